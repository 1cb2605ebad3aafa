// Presets the time zone of a new draft from the browser, where the person has chosen none; it is saved like a choice.
const field = document.querySelector("[data-preset-zone]");
const here = Intl.DateTimeFormat().resolvedOptions().timeZone;
const known = field && [...document.querySelectorAll(`#${field.getAttribute("list")} option`)];

if (field && field.value === field.defaultValue && known.some((option) => option.value === here)) {
  field.value = here;
  // Not before htmx listens, which it does when the page is read.
  document.addEventListener("DOMContentLoaded", () => field.dispatchEvent(new Event("input", { bubbles: true })));
}
