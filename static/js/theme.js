// Light, dark, or as the system says; the choice is kept in this browser.
const KEY = "theme"; // the admin reads and writes the same one
const root = document.documentElement;

function stored() {
  try {
    return localStorage.getItem(KEY) ?? "auto";
  } catch {
    return "auto"; // storage may be forbidden; the system's choice still holds
  }
}

function keep(choice) {
  try {
    localStorage.setItem(KEY, choice);
  } catch {
    // it then holds for this page alone
  }
}

function apply(choice) {
  if (choice === "light" || choice === "dark") root.dataset.theme = choice;
  else delete root.dataset.theme;
  for (const button of document.querySelectorAll("[data-theme-switch] button")) {
    button.setAttribute("aria-pressed", String(button.value === choice));
  }
}

function wire() {
  for (const group of document.querySelectorAll("[data-theme-switch]")) {
    group.hidden = false;
    group.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (!button) return;
      keep(button.value);
      apply(button.value);
    });
  }
  apply(stored());
}

apply(stored());
if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", wire);
else wire();
window.addEventListener("storage", (event) => event.key === KEY && apply(stored()));
