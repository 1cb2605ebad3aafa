import pytest

from sandbox import chats as module
from sandbox.chats import Bubble, Chats, shown


def bubble(number: int) -> Bubble:
    return Bubble(id=str(number), at=number, text=f"text {number}", media="")


def test_the_latest_chat_is_first() -> None:
    chats = Chats()
    for number, to in enumerate(["x", "y", "x"]):
        chats.add("a", to, bubble(number))
    assert [(chat.to, chat.total, chat.unread) for chat in chats.newest_first("a")] == [
        ("x", 2, 2),
        ("y", 1, 1),
    ]


def test_a_chat_keeps_its_last_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    chats = Chats()
    for number in range(module.PER_CHAT + 5):
        chats.add("a", "x", bubble(number))
    chat = chats.get("a", "x")
    assert chat is not None
    assert len(chat.bubbles) == module.PER_CHAT
    assert chat.total == module.PER_CHAT + 5
    assert chat.bubbles[-1].id == str(module.PER_CHAT + 4)


def test_the_coldest_chat_goes_first_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_CHATS", 2)
    chats = Chats()
    for number, to in enumerate(["x", "y", "x", "z"]):
        chats.add("a", to, bubble(number))
    assert [chat.to for chat in chats.newest_first("a")] == ["z", "x"]


def test_the_coldest_chat_goes_first_when_there_are_too_many_messages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MAX_MESSAGES", 10)
    chats = Chats()
    for number in range(100):
        chats.add(f"account {number % 3}", f"chat {number % 7}", bubble(number))
    kept = [chat for number in range(3) for chat in chats.newest_first(f"account {number}")]
    assert 0 < sum(len(chat.bubbles) for chat in kept) <= 10


def test_a_forgotten_account_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_MESSAGES", 2)
    chats = Chats()
    chats.add("a", "x", bubble(1))
    chats.forget("a")
    chats.forget("never there")
    chats.add("b", "x", bubble(2))
    chats.add("b", "y", bubble(3))
    assert chats.get("a", "x") is None
    assert chats.get("b", "x") is not None


def test_a_long_text_is_kept_in_part() -> None:
    assert shown("short") == "short"
    assert len(shown("x" * 10**6)) < module.MAX_TEXT + 5
