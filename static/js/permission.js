// The panel that asks this browser for notifications: data-permission, with a line for each state and two buttons.
// Where web push is set up (data-push-key), the browser also subscribes to it.
import { forgetPush, subscribePush } from "./push.js";

const panel = document.querySelector("[data-permission]");
const supported = "Notification" in window && "serviceWorker" in navigator && window.isSecureContext;

async function state() {
  if (!supported) return "unsupported";
  if (Notification.permission !== "granted") return Notification.permission;
  return (await navigator.serviceWorker.getRegistration()) ? "granted" : "default";
}

async function draw(trouble = "") {
  const now = await state();
  for (const line of panel.querySelectorAll("[data-when]")) line.hidden = line.dataset.when !== now;
  panel.querySelector("[data-trouble]").textContent = trouble;
  panel.hidden = false;
}

async function allow() {
  if ((await Notification.requestPermission()) !== "granted") return draw();
  await navigator.serviceWorker.register("/sw.js");
  try {
    if (panel.dataset.pushKey) await subscribePush(panel);
    await draw();
  } catch {
    await draw("While a page is open it works; this browser could not subscribe for when none is.");
  }
}

async function stop() {
  await forgetPush(panel);
  const worker = await navigator.serviceWorker.getRegistration();
  await worker?.unregister();
  await draw();
}

if (panel) {
  panel.querySelector("[data-allow]").addEventListener("click", allow);
  panel.querySelector("[data-stop]").addEventListener("click", stop);
  draw();
}
