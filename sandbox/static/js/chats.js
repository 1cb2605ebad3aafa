// The chats of one account: its groups, the latest message on top.

import { avatar, pill } from "./avatar.js";
import { $, h, icon, keep } from "./dom.js";
import { link } from "./route.js";
import { count, when } from "./words.js";

function lastWords(last) {
  if (!last) return [h("span", {}, "No messages yet")];
  if (!last.media) return [h("span", {}, last.text)];
  const sign = icon(last.media.type.startsWith("image/") ? "image" : "file");
  return [sign, h("span", {}, last.text || last.media.name)];
}

function row({ account, chat, current }, before) {
  const badge = chat.unread && h("span", { className: "badge" }, chat.unread > 999 ? "999+" : chat.unread);
  if (badge) {
    badge.ariaLabel = `${chat.unread} unread`;
    badge.classList.toggle("bump", Boolean(before));
  }
  return h(
    "li",
    {},
    h(
      "a",
      {
        className: chat.unread ? "row has-unread" : "row",
        href: link(account, chat.to),
        ariaCurrent: String(current),
      },
      avatar(chat.title),
      h(
        "span",
        { className: "what" },
        h("span", { className: "name" }, chat.title),
        h("span", { className: "last" }, ...lastWords(chat.last)),
      ),
      h("span", { className: "aside" }, chat.last ? h("time", {}, when(chat.last.at)) : "", badge || ""),
    ),
  );
}

function bar({ account }, openPanel, panelOpen) {
  return [
    h("a", { className: "icon-button back", href: link(), ariaLabel: "All accounts" }, icon("back")),
    h(
      "div",
      { className: "heading" },
      h("h2", {}, account.title),
      h("p", { className: "quiet" }, pill(account.state), ` ${count(account.delivered, "message")}`),
    ),
    h(
      "button",
      {
        className: "icon-button",
        type: "button",
        ariaLabel: "Behaviour of the account",
        ariaPressed: String(panelOpen),
        onclick: openPanel,
      },
      icon("sliders"),
    ),
  ];
}

export function showChats(view, here, openPanel, panelOpen) {
  const items = view.chats.map((chat) => ({ account: here.account, chat, current: chat.to === here.chat }));
  const list = $("chat-rows");
  if (list.dataset.account !== here.account) delete list.dataset.filled;
  list.dataset.account = here.account;
  keep(list, items, (item) => item.chat.to, row);
  const shows = JSON.stringify([view.account.title, view.account.state, view.account.delivered, panelOpen]);
  if ($("chats-bar").shows !== shows) $("chats-bar").replaceChildren(...bar(view, openPanel, panelOpen));
  $("chats-bar").shows = shows;
  $("no-chats").hidden = items.length > 0;
}
