// Browser notifications of what happens while a page is open. Permission is asked for by a button
// (static/js/permission.js) and never here.
document.addEventListener("paceline:notification", async ({ detail: { title, body, url, tag } }) => {
  if (globalThis.Notification?.permission !== "granted") return;
  const options = { body, tag, icon: "/static/icons/mark.svg", data: { url, tag } };
  const worker = await navigator.serviceWorker?.getRegistration();
  if (worker) return worker.showNotification(title, options);
  const shown = new Notification(title, options);
  shown.onclick = () => {
    window.focus();
    if (url) location.assign(url);
  };
});
