// Adds a passkey, or logs in with one. A form says which: data-passkey="create" or "get". The server's options are in
// the element that data-options names, or at the form's own address.

async function optionsOf(form) {
  const kept = document.getElementById(form.dataset.options ?? "");
  if (kept) return JSON.parse(kept.textContent);
  const answer = await fetch(form.action, { headers: { Accept: "application/json", "X-Requested-With": "XMLHttpRequest" } });
  return answer.json();
}

async function credentialFor(form) {
  const options = await optionsOf(form);
  if (form.dataset.passkey === "get") {
    const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options.request_options.publicKey);
    return navigator.credentials.get({ publicKey });
  }
  const asked = options.creation_options.publicKey;
  const passwordless = form.elements.passwordless?.checked ?? false;
  asked.authenticatorSelection = {
    ...asked.authenticatorSelection,
    residentKey: passwordless ? "required" : "discouraged",
    requireResidentKey: passwordless,
    userVerification: passwordless ? "required" : "preferred",
  };
  return navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(asked) });
}

function say(form, words) {
  let place = form.querySelector("[data-passkey-error]");
  if (!place) {
    place = Object.assign(document.createElement("p"), { className: "error" });
    place.dataset.passkeyError = "";
    place.setAttribute("role", "alert");
    form.append(place);
  }
  place.textContent = words;
}

async function use(form) {
  try {
    const credential = await credentialFor(form);
    form.elements.credential.value = JSON.stringify(credential.toJSON());
    form.submit();
  } catch {
    say(form, "No passkey was used. Try again.");
  }
}

if (window.PublicKeyCredential?.parseRequestOptionsFromJSON) {
  for (const form of document.querySelectorAll("form[data-passkey]")) {
    const button = form.querySelector("[data-passkey-button]");
    button.hidden = false;
    button.addEventListener("click", () => use(form));
  }
  for (const note of document.querySelectorAll("[data-passkey-missing]")) note.hidden = true;
}
