// Subscribes this browser to web push, and tells the server where to send it.
const PATIENCE = 10_000; // without a network `subscribe` may never settle

const bytes = (key) => {
  const text = atob(key.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(text, (letter) => letter.charCodeAt(0));
};

const inTime = (promise) =>
  Promise.race([promise, new Promise((_, reject) => setTimeout(() => reject(new Error("no answer")), PATIENCE))]);

async function post(panel, address, body) {
  const token = panel.querySelector("[name=csrfmiddlewaretoken]").value;
  const headers = { "Content-Type": "application/json", "X-CSRFToken": token };
  const answer = await fetch(address, { method: "POST", headers, body: JSON.stringify(body) });
  if (!answer.ok) throw new Error(`answered ${answer.status}`);
}

export async function subscribePush(panel) {
  const worker = await navigator.serviceWorker.ready;
  const options = { userVisibleOnly: true, applicationServerKey: bytes(panel.dataset.pushKey) };
  const subscription = await inTime(worker.pushManager.subscribe(options));
  await post(panel, panel.dataset.subscribe, subscription.toJSON());
}

export async function forgetPush(panel) {
  const worker = await navigator.serviceWorker.getRegistration();
  const subscription = await worker?.pushManager.getSubscription();
  if (!subscription) return;
  await post(panel, panel.dataset.unsubscribe, { endpoint: subscription.endpoint });
  await subscription.unsubscribe();
}
