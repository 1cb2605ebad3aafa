// Parts of a page that the server draws as a whole, by htmx: data-snapshot on an element that listens for
// "run-changed". They are asked for at most once a second, and once more after the last change.
const CALM = 1000;

const timers = new Map();

// Parts that tell how accounts are: data-accounts="5 7". Another state of one of them is worth a new look.
export function redrawAccount(account) {
  for (const part of document.querySelectorAll(`[data-accounts~="${account}"]`)) {
    if (part.dataset.run) redrawPartials(part.dataset.run);
    else part.dispatchEvent(new CustomEvent("account-changed"));
  }
}

export function redrawPartials(run) {
  if (timers.has(run) || !document.querySelector(`[data-snapshot][data-run="${run}"]`)) return;
  timers.set(
    run,
    setTimeout(() => {
      timers.delete(run);
      for (const part of document.querySelectorAll(`[data-snapshot][data-run="${run}"]`)) {
        part.dispatchEvent(new CustomEvent("run-changed"));
      }
    }, CALM),
  );
}
