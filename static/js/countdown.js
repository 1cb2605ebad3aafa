// Counts down the seconds of [data-countdown] elements, also of those that are swapped in later.
const ends = new WeakMap();

function tick() {
  for (const element of document.querySelectorAll("[data-countdown]")) {
    if (!ends.has(element)) ends.set(element, Date.now() + element.dataset.countdown * 1000);
    const left = Math.max(0, Math.ceil((ends.get(element) - Date.now()) / 1000));
    element.textContent = `${left} s`;
  }
}

tick();
setInterval(tick, 250);
