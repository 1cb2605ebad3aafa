// The behaviour of an account: shows it and changes it. A field that somebody is using is left alone.

import { pill } from "./avatar.js";
import { $, h, icon } from "./dom.js";
import { CALM, PRESETS, SECTIONS } from "./fields.js";
import { link } from "./route.js";
import { change, forget } from "./server.js";
import { count, when } from "./words.js";

const STEPS = {
  WORKING: [["Disconnect", "STOPPED"], ["Log out", "SCAN_QR_CODE"]],
  SCAN_QR_CODE: [["Scan the code", "WORKING"]],
  STOPPED: [["Connect", "WORKING"]],
  BANNED: [["Lift the ban", "WORKING"]],
};

let shown = null;

function valueOf(input) {
  return input.type === "checkbox" ? input.checked : Number(input.value);
}

function field(account, { name, label, type, max, step, said }) {
  const input = h("input", { type, name, id: `field-${name}` });
  if (type !== "checkbox") Object.assign(input, { min: 0, max, step });
  const output = said && h("output", { htmlFor: input.id });
  const say = () => output && (output.value = said(valueOf(input)));
  input.addEventListener("input", say);
  input.addEventListener("change", () => input.reportValidity() && change(account, { [name]: valueOf(input) }));
  const show = (value) => {
    if (document.activeElement === input && type === "number") return;
    input[type === "checkbox" ? "checked" : "value"] = value;
    say();
  };
  const row = h("div", { className: "field" }, h("label", { htmlFor: input.id }, label), output || "", input);
  return { name, row, show };
}

function build(name, close) {
  const fields = SECTIONS.map((section) => section.fields.map((one) => field(name, one)));
  const state = h("section", { ariaLabel: "State" });
  const chips = PRESETS.map(({ label, wishes }) =>
    h("button", { className: "chip", type: "button", onclick: () => change(name, { ...CALM, ...wishes }) }, label),
  );
  const leave = async () => {
    await forget(name);
    location.hash = link();
  };
  $("panel").replaceChildren(
    h(
      "header",
      { className: "bar" },
      h(
        "div",
        { className: "heading" },
        h("h2", {}, "Behaviour"),
        h("p", { className: "quiet" }, "From the next request on. Not kept when the sandbox restarts."),
      ),
      h("button", { className: "icon-button", type: "button", ariaLabel: "Close", onclick: close }, icon("close")),
    ),
    h(
      "div",
      { className: "controls" },
      state,
      h("section", {}, h("h3", {}, "Play"), h("div", { className: "chips" }, ...chips)),
      ...SECTIONS.map((one, place) => h("section", {}, h("h3", {}, one.title), ...fields[place].map((f) => f.row))),
      h(
        "section",
        {},
        h("button", { className: "plain danger", type: "button", onclick: leave }, "Forget this account"),
      ),
    ),
  );
  return { name, state, chips, fields: fields.flat() };
}

function quotaOf({ total, used, until, locked_until }) {
  const told = [];
  if (total) told.push(`${used} of ${count(total, "new chat")} used until ${when(until)}`);
  if (locked_until) told.push(`new chats are locked until ${when(locked_until)}`);
  return h("p", { className: "quiet", hidden: told.length === 0 }, told.join("; "));
}

function stateOf(account) {
  const steps = STEPS[account.state].map(([label, state]) =>
    h("button", { className: "plain", type: "button", onclick: () => change(account.name, { state }) }, label),
  );
  return [
    h(
      "p",
      { className: "meter" },
      h("b", {}, account.last_minute),
      h("span", { className: "quiet" }, "received in the last minute"),
    ),
    quotaOf(account.new_chats),
    pill(account.state),
    h("div", { className: "actions" }, ...steps),
  ];
}

export function showPanel({ account }, close) {
  if (shown?.name !== account.name) shown = build(account.name, close);
  if (!shown.state.contains(document.activeElement) || shown.now !== account.state) {
    shown.state.replaceChildren(...stateOf(account));
    shown.now = account.state;
  }
  for (const { name, show } of shown.fields) show(account.behaviour[name]);
  PRESETS.forEach(({ wishes }, place) => {
    const like = Object.entries({ ...CALM, ...wishes }).every(([name, value]) => account.behaviour[name] === value);
    shown.chips[place].ariaPressed = String(like);
  });
}
