// Lets a message be closed. Without script it stays, and goes with the next page.
for (const button of document.querySelectorAll("[data-dismiss]")) button.hidden = false;

document.addEventListener("click", (event) => {
  event.target.closest("[data-dismiss]")?.parentElement.remove();
});
