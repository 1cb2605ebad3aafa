// One chat: bubbles under the names of their days; stays at the end unless the reader scrolled up.

import { avatar } from "./avatar.js";
import { $, h, icon, keep } from "./dom.js";
import { link, place } from "./route.js";
import { writeBack } from "./server.js";
import { count, day, size, time } from "./words.js";

function attachment(media) {
  const source = `/page/media/${media.handle}`;
  if (media.kept && media.type.startsWith("image/")) return h("img", { src: source, alt: media.name });
  if (media.kept && media.type.startsWith("video/")) return h("video", { src: source, controls: true });
  if (media.kept && media.type.startsWith("audio/")) return h("audio", { src: source, controls: true });
  const words = h("span", {}, h("b", {}, media.name), h("span", { className: "quiet" }, size(media.size)));
  return h("div", { className: "attachment" }, icon("file"), words);
}

function item({ bubble, sender, first, label }) {
  if (label) return h("li", { className: "day" }, label);
  return h(
    "li",
    { className: ["bubble", first && "first", bubble.reply && "reply"].filter(Boolean).join(" ") },
    first ? h("span", { className: "sender" }, sender) : null,
    bubble.media ? attachment(bubble.media) : null,
    h("span", { className: "words" }, bubble.text),
    h("time", { title: new Date(bubble.at).toLocaleString() }, time(bubble.at)),
  );
}

// Bubbles that follow each other within five minutes form one group, with the sender's name on its first.
function items({ thread, account }) {
  const lost = thread.total - thread.bubbles.length;
  const all = lost > 0 ? [{ id: "lost", label: `${count(lost, "earlier message")} not kept` }] : [];
  let [last, mine] = [0, null];
  for (const bubble of thread.bubbles) {
    const newDay = day(bubble.at) !== day(last);
    if (newDay) all.push({ id: `day ${day(bubble.at)}`, label: day(bubble.at) });
    const first = newDay || bubble.at - last > 300_000 || bubble.reply !== mine;
    all.push({ id: bubble.id, bubble, sender: bubble.reply ? "Somebody in this chat" : account.title, first });
    [last, mine] = [bubble.at, bubble.reply];
  }
  return all;
}

function bar({ thread }, here) {
  const about = [thread.typing ? "typing…" : "", thread.members ? count(thread.members, "member") : "", count(thread.total, "message")];
  return [
    h("a", { className: "icon-button back", href: link(here.account), ariaLabel: "All chats" }, icon("back")),
    avatar(thread.title),
    h(
      "div",
      { className: "heading" },
      h("h2", {}, thread.title),
      h("p", { className: "quiet" }, about.filter(Boolean).join(" · ")),
    ),
  ];
}

export function showThread(view, here) {
  const [list, scroller] = [$("bubbles"), $("scroller")];
  $("no-thread").hidden = Boolean(view.thread);
  $("answer").hidden = !view.thread;
  if (!view.thread) return;
  const other = list.dataset.chat !== location.hash;
  const atEnd = other || scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 80;
  if (other) delete list.dataset.filled;
  list.dataset.chat = location.hash;
  keep(list, items(view), (one) => one.id, item);
  $("thread-bar").replaceChildren(...bar(view, here));
  if (atEnd) scroller.scrollTop = scroller.scrollHeight;
  $("jump").hidden = atEnd;
  $("jump").replaceChildren(icon("down"), "To the latest");
}

export function watchScrolling() {
  const scroller = $("scroller");
  $("jump").addEventListener("click", () => scroller.scrollTo({ top: scroller.scrollHeight, behavior: "smooth" }));
  scroller.addEventListener("scroll", () => {
    if (scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 80) $("jump").hidden = true;
  });
}

export function watchAnswers() {
  $("answer").addEventListener("submit", async (event) => {
    event.preventDefault();
    const { account, chat } = place();
    const text = $("answer-text").value.trim();
    if (!text) return;
    $("answer-text").value = "";
    await writeBack(account, chat, text);
  });
}
