// Counts the seconds of [data-countdown] down and of [data-countup] up, also of elements that are swapped in later.
// A part of the page that is redrawn by the server is asked for again once its clock has run out.
const moments = new WeakMap();
const over = new WeakSet();

function words(seconds) {
  if (seconds < 90) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes >= 60) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  return `${minutes} min ${seconds % 60} s`;
}

function momentOf(element, sign) {
  const seconds = element.dataset.countdown ?? element.dataset.countup;
  if (!moments.has(element)) moments.set(element, Date.now() + sign * seconds * 1000);
  return moments.get(element);
}

function runOut(element) {
  if (over.has(element)) return;
  over.add(element);
  element.closest("[data-snapshot]")?.dispatchEvent(new CustomEvent("run-changed"));
}

function tick() {
  for (const element of document.querySelectorAll("[data-countdown]")) {
    const left = Math.max(0, Math.ceil((momentOf(element, 1) - Date.now()) / 1000));
    element.textContent = words(left);
    if (!left) runOut(element);
  }
  for (const element of document.querySelectorAll("[data-countup]")) {
    element.textContent = words(Math.max(0, Math.floor((Date.now() - momentOf(element, -1)) / 1000)));
  }
}

tick();
setInterval(tick, 250);
