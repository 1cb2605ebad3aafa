// Asks for the same messages by plain requests, while there is no socket.
const EVERY = 5000;
const PATIENCE = 3000; // a socket that comes back within this is not missed

let timer;

export function startPolling(path, { onMessage, onState }) {
  if (timer !== undefined) return;
  timer = setTimeout(ask, PATIENCE);

  async function ask() {
    try {
      const answer = await fetch(path(), { headers: { Accept: "application/json" }, redirect: "error" });
      if (answer.status === 401) return onState("refused");
      if (answer.ok) {
        for (const message of (await answer.json()).messages) onMessage(message);
        onState("polling");
      }
    } catch {
      onState("away"); // neither way works: the next round may
    }
    if (timer !== undefined) timer = setTimeout(ask, EVERY);
  }
}

export function stopPolling() {
  clearTimeout(timer);
  timer = undefined;
}
