import pytest

from sandbox import chats
from sandbox.chats import Bubble, Chats, shown


def bubble(number: int) -> Bubble:
    return Bubble(id=str(number), at=number, text=f"text {number}", media="")


def test_the_latest_chat_is_first() -> None:
    kept = Chats()
    for number, to in enumerate(["x", "y", "x"]):
        kept.add("a", to, bubble(number))
    assert [(chat.to, chat.total, chat.unread) for chat in kept.newest_first("a")] == [
        ("x", 2, 2),
        ("y", 1, 1),
    ]


def test_a_chat_keeps_its_last_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Chats()
    for number in range(chats.PER_CHAT + 5):
        kept.add("a", "x", bubble(number))
    chat = kept.get("a", "x")
    assert chat is not None
    assert len(chat.bubbles) == chats.PER_CHAT
    assert chat.total == chats.PER_CHAT + 5
    assert chat.bubbles[-1].id == str(chats.PER_CHAT + 4)


def test_the_coldest_chat_goes_first_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chats, "MAX_CHATS", 2)
    kept = Chats()
    for number, to in enumerate(["x", "y", "x", "z"]):
        kept.add("a", to, bubble(number))
    assert [chat.to for chat in kept.newest_first("a")] == ["z", "x"]


def test_the_coldest_chat_goes_first_when_there_are_too_many_messages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(chats, "MAX_MESSAGES", 10)
    kept = Chats()
    for number in range(100):
        kept.add(f"account {number % 3}", f"chat {number % 7}", bubble(number))
    left = [chat for number in range(3) for chat in kept.newest_first(f"account {number}")]
    assert 0 < sum(len(chat.bubbles) for chat in left) <= 10


def test_a_forgotten_account_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chats, "MAX_MESSAGES", 2)
    kept = Chats()
    kept.add("a", "x", bubble(1))
    kept.forget("a")
    kept.forget("never there")
    kept.add("b", "x", bubble(2))
    kept.add("b", "y", bubble(3))
    assert kept.get("a", "x") is None
    assert kept.get("b", "x") is not None


def test_a_long_text_is_kept_in_part() -> None:
    assert shown("short") == "short"
    assert len(shown("x" * 10**6)) < chats.MAX_TEXT + 5
