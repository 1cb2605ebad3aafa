// The page to try the API: sends what a form says with the typed key, and shows the answer. No cookie is sent.
const page = document.querySelector("[data-try-api]");
const key = page.querySelector("[data-key]");

function addressOf(form) {
  let path = form.dataset.path;
  const query = new URLSearchParams();
  for (const field of form.querySelectorAll("[data-in]")) {
    const value = field.value.trim();
    if (field.dataset.in === "path") path = path.replace(`{${field.name}}`, encodeURIComponent(value));
    if (field.dataset.in === "query" && value) query.set(field.name, value);
  }
  return query.size ? `${path}?${query}` : path;
}

function requestOf(form) {
  const headers = { Authorization: `Bearer ${key.value.trim()}` };
  for (const field of form.querySelectorAll("[data-in=header]")) {
    if (field.value.trim()) headers[field.name] = field.value.trim();
  }
  const body = form.querySelector("[data-body]");
  const file = form.querySelector("[data-file]");
  if (body) headers["Content-Type"] = "application/json";
  const sent = file ? new FormData() : body?.value;
  if (file?.files.length) sent.append("file", file.files[0]);
  return { method: form.dataset.method, headers, body: sent, credentials: "omit", cache: "no-store" };
}

async function shown(response) {
  const text = await response.text();
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

page.addEventListener("submit", async (event) => {
  event.preventDefault();
  const form = event.target;
  const answer = form.querySelector("[data-answer]");
  answer.hidden = false;
  answer.textContent = "Waiting for the answer.";
  try {
    const response = await fetch(addressOf(form), requestOf(form));
    answer.textContent = `${response.status} ${response.statusText}\n${await shown(response)}`;
  } catch (error) {
    answer.textContent = `No answer: ${error.message}`;
  }
});
