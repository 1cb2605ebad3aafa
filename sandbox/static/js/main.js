// Reads the snapshot of what the reader looks at, whenever something changed, and shows it.

import { showAccounts } from "./accounts.js";
import { showChats } from "./chats.js";
import { $ } from "./dom.js";
import { showPanel } from "./panel.js";
import { link, place } from "./route.js";
import { listen, make, markRead, view as read } from "./server.js";
import { showThread, watchAnswers, watchScrolling } from "./thread.js";

const app = $("app");
const wide = matchMedia("(min-width: 72rem)");
let panelOpen = wide.matches;
let busy = false;
let again = false;

function togglePanel() {
  panelOpen = !panelOpen;
  refresh();
}

function show(view, here) {
  app.dataset.view = here.chat ? "thread" : view.account ? "chats" : "accounts";
  app.classList.toggle("no-account", !view.account);
  app.classList.toggle("with-panel", Boolean(view.account) && panelOpen);
  showAccounts(view, here, $("find-account").value !== "");
  showThread(view, here);
  if (!view.account) return;
  showChats(view, here, togglePanel, panelOpen);
  showPanel(view, togglePanel);
  document.title = `${view.thread?.title ?? view.account.title} · Sandbox`;
}

async function refresh() {
  if (document.hidden) return;
  again = busy;
  if (busy) return;
  busy = true;
  try {
    const here = place();
    const query = { ...here, find_account: $("find-account").value, find_chat: $("find-chat").value };
    const view = await read(query);
    const now = place();
    if (now.account === here.account && now.chat === here.chat) show(view, here);
    else again = true;
    if (view.thread?.unread) await markRead(here.account, here.chat);
  } catch {
    connected(false); // the next event, after the line is back, reads again
  } finally {
    busy = false;
  }
  if (again) refresh();
}

function connected(on) {
  $("live").textContent = on ? "live" : "not connected";
  $("live").toggleAttribute("data-on", on);
}

$("find-account").addEventListener("input", refresh);
$("find-chat").addEventListener("input", refresh);
$("make-account").addEventListener("click", async () => {
  await make("practice", {});
  location.hash = link("practice");
});
addEventListener("hashchange", refresh);
document.addEventListener("visibilitychange", refresh);
wide.addEventListener("change", () => {
  panelOpen = wide.matches;
  refresh();
});
// "In the last minute" changes while nothing happens.
setInterval(refresh, 5000);
watchScrolling();
watchAnswers();
listen(refresh, connected);
