// Keeps an open page right: progress, pauses and endings appear by themselves. docs/live.md describes the parts.
import { redrawBlocks, redrawOften } from "./live/blocks.js";
import { redrawAccount, redrawPartials } from "./live/partials.js";
import { placeAccount, placeRun, placeUnread } from "./live/place.js";
import { startPolling, stopPolling } from "./live/poll.js";
import { keepOpen } from "./live/socket.js";
import { sayChange, sayState } from "./live/state.js";

const ME = "/ws/me/";
const statuses = new Map(); // as the page shows them
const away = new Set(); // sockets that are not open

const places = () => [...document.querySelectorAll("[data-run]")];
const query = () => (places().length ? `?runs=${[...new Set(places().map((place) => place.dataset.run))]}` : "");

const handlers = {
  run(message) {
    placeRun(message);
    redrawPartials(message.run);
    redrawOften();
    if (changed(`run ${message.run}`, message.status)) sayChange(message);
  },
  account(message) {
    placeAccount(message);
    redrawAccount(message.account);
    changed(`account ${message.account}`, message.status);
  },
  unread: placeUnread,
  notification: (message) => document.dispatchEvent(new CustomEvent("paceline:notification", { detail: message })),
};
const onMessage = (message) => handlers[message.type]?.(message);

// Another state redraws blocks, and so does a run that the page does not show yet.
function changed(name, status) {
  const differs = statuses.get(name) !== status;
  statuses.set(name, status);
  if (differs) redrawBlocks();
  return differs;
}

function watch(path) {
  const onState = (state) => {
    if (state === "live" && away.delete(path)) redrawBlocks();
    if (state === "away") away.add(path);
    if (state === "refused" || !away.size) stopPolling();
    else startPolling(() => `/live/${query()}`, { onMessage, onState: sayState });
    sayState(state === "live" && away.size ? "away" : state);
  };
  keepOpen(() => (path === ME ? path + query() : path), { onMessage, onState });
}

for (const { dataset } of document.querySelectorAll("[data-run][data-status]")) {
  statuses.set(`run ${dataset.run}`, dataset.status);
}
watch(ME);
for (const place of document.querySelectorAll("[data-live-run]")) watch(`/ws/runs/${place.dataset.liveRun}/`);
