// A socket that comes back by itself: after about 1 s, 2 s, 4 s and so on up to 30 s, at once when the network
// returns or the page is looked at again. Half of each wait is chance, so that a thousand pages do not return together.
const LONGEST = 30_000;
const FOR_GOOD = new Set([4401, 4403, 4404]); // logged out, not yours any more, not there

const wait = (failures) => Math.min(LONGEST, 1000 * 2 ** (failures - 1)) * (0.5 + Math.random() / 2);
const address = (path) => new URL(path, location.href.replace(/^http/, "ws")).href;

// `path()` is asked anew each time. `onState` hears "live", "away" and "refused".
export function keepOpen(path, { onMessage, onState }) {
  let failures = 0;
  let timer;

  function open() {
    clearTimeout(timer);
    timer = undefined;
    let socket;
    try {
      socket = new WebSocket(address(path()));
    } catch {
      return lost({ code: 0 }); // forbidden in this browser
    }
    socket.onopen = () => {
      failures = 0;
      onState("live");
    };
    socket.onmessage = (event) => onMessage(JSON.parse(event.data));
    socket.onclose = lost;
  }

  function lost({ code }) {
    if (FOR_GOOD.has(code)) return onState("refused");
    failures += 1;
    onState("away");
    timer = setTimeout(open, wait(failures));
  }

  const soon = () => timer !== undefined && open();
  window.addEventListener("online", soon);
  document.addEventListener("visibilitychange", () => document.hidden || soon());
  open();
}
