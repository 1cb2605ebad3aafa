// Everything that is asked of the server.

async function ask(path, options) {
  const answer = await fetch(path, options);
  if (!answer.ok) throw new Error((await answer.json()).message);
  return answer.status === 204 ? null : answer.json();
}

const control = (account) => `/control/${encodeURIComponent(account)}`;

export const view = (query) => ask(`/page/view?${new URLSearchParams(query)}`);
export const change = (account, wishes) => ask(control(account), { method: "PATCH", body: JSON.stringify(wishes) });
export const make = (account, wishes) => ask(control(account), { method: "PUT", body: JSON.stringify(wishes) });
export const forget = (account) => ask(control(account), { method: "DELETE" });
export const writeBack = (account, chat, text) =>
  ask(`${control(account)}/chats/${encodeURIComponent(chat)}`, { method: "POST", body: JSON.stringify({ text }) });
export const markRead = (account, chat) =>
  ask(`/page/read/${encodeURIComponent(account)}/${encodeURIComponent(chat)}`, { method: "POST" });

// Calls `changed` at every change, and `connected` when the line is there or lost. The browser reconnects by itself.
export function listen(changed, connected) {
  const events = new EventSource("/page/live");
  events.onmessage = changed;
  events.onopen = () => connected(true);
  events.onerror = () => connected(false);
}
