// The service worker: shows what web push brings, and does what the buttons on a notification say.
// Served at /sw.js, so that it may open every page.
const ICON = "/static/icons/mark.svg";
const TITLES = { resume: "Resume", cancel: "Cancel", confirm: "Cancel run", approve: "Approve", refuse: "Refuse" };

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

self.addEventListener("push", (event) => event.waitUntil(show(event.data.json())));

self.addEventListener("notificationclick", (event) => {
  const { url, moves, tag } = event.notification.data;
  event.notification.close();
  const address = moves?.[event.action];
  event.waitUntil(address ? act(address, tag) : open(url));
});

// The tag keeps the same news from standing there twice, whether a page or a push brings it.
function show({ title, body, url, tag, moves = {} }) {
  const actions = Object.keys(moves).map((action) => ({ action, title: TITLES[action] }));
  return self.registration.showNotification(title, { body, tag, icon: ICON, actions, data: { url, moves, tag } });
}

// The address is a permit for this one move; no cookie goes with it.
async function act(address, tag) {
  try {
    const answer = await fetch(address, { method: "POST", credentials: "omit" });
    return show({ ...(await answer.json()), tag });
  } catch {
    const body = "Paceline could not be reached. Tap to open it.";
    return show({ title: "Nothing was changed", body, url: "/", tag });
  }
}

async function open(url) {
  const target = new URL(url || "/", self.location.origin).href;
  const pages = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
  const page = pages.find((each) => each.url === target);
  return page ? page.focus() : self.clients.openWindow(target);
}
