// Blocks that a change of state redraws, such as a banner: data-live-block on an element with an id. The page
// itself is asked for again and its blocks are taken from it, so that there is one place that draws them.
// data-live-block="often" is for lists: redrawn while messages go out too, every few seconds.
const CALM = 300; // changes come in groups
const OFTEN = 4000;

let timer;
let later;

export function redrawBlocks() {
  if (!document.querySelector("[data-live-block]")) return;
  clearTimeout(timer);
  timer = setTimeout(redraw, CALM);
}

export function redrawOften() {
  if (later !== undefined || document.hidden || !document.querySelector('[data-live-block="often"]')) return;
  later = setTimeout(() => {
    later = undefined;
    redraw();
  }, OFTEN);
}

async function redraw() {
  let answer;
  try {
    answer = await fetch(location.href, { headers: { "X-Requested-With": "live" }, redirect: "error" });
  } catch {
    return; // the next change tries again
  }
  if (!answer.ok) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const block of document.querySelectorAll("[data-live-block]")) {
    const other = fresh.getElementById(block.id);
    if (!other || other.innerHTML === block.innerHTML || inUse(block)) continue;
    block.replaceChildren(...document.importNode(other, true).childNodes);
    window.htmx?.process(block);
  }
}

// Somebody is typing, choosing or has something open there: what they do counts more.
function inUse(block) {
  const active = document.activeElement;
  return (
    block.querySelector("details[open], input:checked, dialog[open]") ||
    (block.contains(active) && active.matches("input, select, textarea"))
  );
}
