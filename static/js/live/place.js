// Puts what a message says into its places:
//   data-run="12"          holds data-text="sent" (any text of the message), data-part (a bar's segment), data-count
//   data-run-status="12"   holds a pill; data-account-status="5" as well
//   data-unread            the bell's number
const BAR_WIDTH = 1000; // activity/components/plots.py draws in the same units

export function placeRun(message) {
  for (const place of document.querySelectorAll(`[data-run="${message.run}"]`)) {
    texts(place, message.text);
    bar(place, message);
    for (const item of place.querySelectorAll("[data-count]")) {
      item.toggleAttribute("data-none", message.text[item.dataset.count] === "0");
    }
  }
  pills(`[data-run-status="${message.run}"]`, message);
}

export function placeAccount(message) {
  for (const place of document.querySelectorAll(`[data-account="${message.account}"]`)) texts(place, message.text);
  pills(`[data-account-status="${message.account}"]`, message);
}

export function placeUnread({ unread }) {
  for (const place of document.querySelectorAll("[data-unread]")) {
    place.textContent = unread > 99 ? "99+" : unread;
    place.hidden = !unread;
  }
}

function texts(place, words) {
  for (const [name, text] of Object.entries(words)) {
    for (const spot of place.querySelectorAll(`[data-text="${name}"]`)) {
      if (spot.textContent !== text) spot.textContent = text;
    }
  }
}

// As long as those who were to get it: who was left out is not drawn.
function bar(place, { counts, expected, left_out }) {
  let x = 0;
  for (const [name, count] of Object.entries({ ...counts, skipped: counts.skipped - left_out })) {
    const width = expected ? (BAR_WIDTH * count) / expected : 0;
    const part = place.querySelector(`[data-part="${name}"]`);
    part?.setAttribute("x", x);
    part?.setAttribute("width", width);
    x += width;
  }
  const label = Object.entries(counts).filter(([, count]) => count).map(([name, count]) => `${count} ${name}`);
  place.querySelector(".bar")?.setAttribute("aria-label", label.join(", ") || "no targets");
}

function pills(selector, { status, look }) {
  for (const place of document.querySelectorAll(selector)) {
    const pill = place.querySelector(".pill");
    const symbol = pill?.querySelector("use");
    if (!symbol) continue;
    pill.className = `pill pill-${status.replaceAll("_", "-")} tone-${look.tone}`;
    symbol.setAttribute("href", symbol.getAttribute("href").replace(/#.*/, `#${look.icon}`));
    pill.lastChild.textContent = look.word;
  }
}
