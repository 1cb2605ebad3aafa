// Says calmly when a page is not live: data-live-state. Nothing is said while all is well, nor for a short break.
// data-live-say tells screen readers what became of a run.
const WORDS = {
  live: "Live",
  away: "Not live. Trying again…",
  polling: "Not live. Looking again every few seconds.",
  refused: "This page may be out of date. Reload it.",
};
const QUIET = 4000;

let latest = "live";
let timer;

export function sayState(state) {
  latest = state;
  if (state === "live" || state === "refused") return show();
  timer ??= setTimeout(show, QUIET);
}

export function sayChange({ look, text }) {
  for (const place of document.querySelectorAll("[data-live-say]")) {
    place.textContent = `${look.word}. ${text.summary}`;
  }
}

function show() {
  clearTimeout(timer);
  timer = undefined;
  for (const place of document.querySelectorAll("[data-live-state]")) {
    place.dataset.liveState = latest;
    place.textContent = WORDS[latest];
    place.hidden = latest === "live";
  }
}
