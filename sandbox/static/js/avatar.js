// A coloured sign for a name: the same name always looks the same.

import { h, icon } from "./dom.js";
import { STATES } from "./words.js";

function hue(name) {
  let sum = 0;
  for (const letter of name) sum = (sum * 31 + letter.codePointAt(0)) % 360;
  return sum;
}

export function avatar(name, kind = "chat") {
  const words = name.split(/[\s,]+/).filter(Boolean);
  const initials = words.slice(0, 2).map((word) => [...word][0].toUpperCase()).join("");
  const sign = h("span", { className: `avatar ${kind}`, ariaHidden: "true" }, initials);
  sign.style.setProperty("--hue", hue(name));
  return sign;
}

export function pill(state) {
  const { word, tone, icon: sign } = STATES[state];
  return h("span", { className: `pill ${tone}` }, icon(sign), word);
}
