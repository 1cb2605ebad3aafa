// Counts the characters of a text with data-most, once it comes near that number. Nothing is cut: too long is refused.
const NEAR = 0.8;

function count(field) {
  const most = Number(field.dataset.most);
  const length = [...field.value].length;
  let note = field.nextElementSibling?.matches("[data-counter]") ? field.nextElementSibling : null;
  if (length < NEAR * most) {
    note?.remove();
    return;
  }
  if (!note) {
    note = document.createElement("p");
    note.dataset.counter = "";
    note.setAttribute("role", "status");
    field.after(note);
  }
  note.className = length > most ? "error num" : "hint num";
  const over = length > most ? `, ${(length - most).toLocaleString("en")} too many` : "";
  note.textContent = `${length.toLocaleString("en")} of ${most.toLocaleString("en")} characters${over}`;
}

const countAll = () => document.querySelectorAll("[data-most]").forEach(count);

document.addEventListener("input", (event) => event.target.matches?.("[data-most]") && count(event.target));
document.addEventListener("htmx:afterSettle", countAll);
countAll();
