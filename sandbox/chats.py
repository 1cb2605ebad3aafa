"""The chats that the page shows: the last messages of each; the chats without new messages are dropped first."""

from collections import OrderedDict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field

PER_CHAT = 200
MAX_CHATS = 20_000
MAX_MESSAGES = 50_000
MAX_TEXT = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Bubble:
    """One delivered message, or a reply to one, as the page shows it."""

    id: str
    at: int
    text: str
    media: str
    reply: bool = False


@dataclass(slots=True, kw_only=True)
class Chat:
    """The messages that one account delivered to one recipient."""

    account: str
    to: str
    total: int = 0
    unread: int = 0
    bubbles: deque[Bubble] = field(default_factory=lambda: deque(maxlen=PER_CHAT))


class Chats:
    """All chats, in the order of their last message."""

    def __init__(self) -> None:
        self._all: OrderedDict[tuple[str, str], Chat] = OrderedDict()
        self._of: dict[str, OrderedDict[str, Chat]] = {}
        self._messages = 0

    def add(self, account: str, to: str, bubble: Bubble) -> None:
        chat = self._warm(account, to)
        self._messages += len(chat.bubbles) < PER_CHAT
        chat.bubbles.append(bubble)
        chat.total += 1
        chat.unread += not bubble.reply
        while self._messages > MAX_MESSAGES or len(self._all) > MAX_CHATS:
            self._forget_coldest()

    def get(self, account: str, to: str) -> Chat | None:
        return self._all.get((account, to))

    def newest_first(self, account: str) -> Iterator[Chat]:
        return reversed(self._of.get(account, {}).values())

    def forget(self, account: str) -> None:
        for to, chat in self._of.pop(account, {}).items():
            self._messages -= len(chat.bubbles)
            del self._all[account, to]

    def _warm(self, account: str, to: str) -> Chat:
        """Return the chat, moved to the newest end; made where there is none."""
        mine = self._of.setdefault(account, OrderedDict())
        chat = self._all.get((account, to))
        if chat is None:
            chat = self._all[account, to] = mine[to] = Chat(account=account, to=to)
        else:
            self._all.move_to_end((account, to))
            mine.move_to_end(to)
        return chat

    def _forget_coldest(self) -> None:
        (account, to), chat = self._all.popitem(last=False)
        self._messages -= len(chat.bubbles)
        del self._of[account][to]


def shown(text: str) -> str:
    """Return the part of a text that a chat keeps."""
    return text if len(text) <= MAX_TEXT else text[:MAX_TEXT] + " …"
