// Select2 puts a field of its own in place of a select, and gives it no name for readers: it gets the select's.
function nameOf(select) {
  const label = select.labels?.[0]?.textContent.trim().replace(/:$/, "");
  return select.getAttribute("aria-label") ?? label ?? select.name;
}

function nameAll() {
  for (const select of document.querySelectorAll("select.select2-hidden-accessible")) {
    const parts = select.nextElementSibling?.querySelectorAll("[role=combobox], [role=textbox], input") ?? [];
    for (const part of parts) {
      part.removeAttribute("aria-labelledby");
      part.setAttribute("aria-label", nameOf(select));
    }
  }
}

nameAll();
new MutationObserver(nameAll).observe(document.body, { childList: true, subtree: true });
