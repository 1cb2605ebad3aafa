// The list of accounts.

import { avatar, pill } from "./avatar.js";
import { $, h, keep } from "./dom.js";
import { link } from "./route.js";
import { count, when } from "./words.js";

function row({ account, current }) {
  return h(
    "li",
    {},
    h(
      "a",
      { className: "row", href: link(account.name), ariaCurrent: String(current) },
      avatar(account.title, "account"),
      h("span", { className: "what" }, h("span", { className: "name" }, account.title), pill(account.state)),
      h(
        "span",
        { className: "aside" },
        account.last_at ? h("time", {}, when(account.last_at)) : "",
        h("span", { title: count(account.delivered, "message") }, account.delivered.toLocaleString()),
      ),
    ),
  );
}

export function showAccounts({ accounts }, here, searching) {
  const items = accounts.shown.map((account) => ({ account, current: account.name === here.account }));
  keep($("account-rows"), items, (item) => item.account.name, row);
  $("no-accounts").hidden = accounts.total > 0 || searching;
  const hidden = accounts.total - accounts.shown.length;
  $("more-accounts").hidden = hidden === 0;
  $("more-accounts").textContent = `and ${count(hidden, "more account")}: find them by name`;
}
