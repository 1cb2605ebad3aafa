// Conveniences of the wizard's steps. Each step works without them.

// A chosen file is taken in at once.
document.addEventListener("change", (event) => {
  const button = document.querySelector(event.target.dataset?.submit || null);
  if (button && event.target.files.length) button.form.requestSubmit(button);
});

// A variable goes where the caret was last.
let last = null;
document.addEventListener("focusin", (event) => {
  if (event.target.matches("textarea, input[name=subject]")) last = event.target.id;
});
document.addEventListener("click", (event) => {
  const chip = event.target.closest("[data-insert]");
  if (!chip) return;
  const field = document.getElementById(last) ?? document.querySelector("#message-form textarea");
  field.setRangeText(chip.dataset.insert, field.selectionStart, field.selectionEnd, "end");
  field.focus();
  field.dispatchEvent(new Event("input", { bubbles: true }));
});

// What was typed while the page was still loading, or what the browser put back, is saved and shown as if typed now.
window.addEventListener("load", () => {
  const fields = [...document.querySelectorAll("#message-form textarea, #message-form input[name=subject]")];
  fields
    .find((field) => field.value !== field.defaultValue)
    ?.dispatchEvent(new Event("input", { bubbles: true }));
});
