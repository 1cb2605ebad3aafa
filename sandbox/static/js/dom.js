// Builds and keeps elements. Text always goes in as text, never as markup.

export const $ = (id) => document.getElementById(id);

export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name in element) element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export function icon(name) {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  const use = document.createElementNS(space, "use");
  svg.setAttribute("aria-hidden", "true");
  use.setAttribute("href", `/static/icons.svg#${name}`);
  svg.append(use);
  return svg;
}

// Makes `list` show `items` in their order. An element stays as long as its item stays, and is made anew only when
// what it shows has changed; one that was not there before is marked "new", so that it can make an entrance.
export function keep(list, items, key, make) {
  const old = new Map([...list.children].map((element) => [element.dataset.key, element]));
  const first = !list.dataset.filled;
  const wanted = items.map((item) => {
    const shows = JSON.stringify(item);
    const before = old.get(key(item));
    if (before && before.shows === shows) return before;
    const element = make(item, before);
    Object.assign(element.dataset, { key: key(item) });
    element.shows = shows;
    element.classList.toggle("new", !before && !first);
    return element;
  });
  list.dataset.filled = "yes";
  wanted.forEach((element, place) => {
    if (list.children[place] !== element) list.insertBefore(element, list.children[place] ?? null);
  });
  while (list.children.length > wanted.length) list.lastChild.remove();
}
