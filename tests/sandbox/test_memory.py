"""The sandbox may run for weeks: what it remembers has an end."""

import pytest

from sandbox import media
from sandbox.keys import Keys
from sandbox.media import Shelf, Upload


def upload(handle: str, account: str = "a") -> Upload:
    return Upload(handle=handle, account=account, filename="f", content_type="image/png", size=3)


def test_a_key_is_new_once() -> None:
    keys = Keys()
    first, new = keys.remember("a", "k")
    assert new
    assert keys.remember("a", "k") == (first, False)


def test_a_key_belongs_to_its_account() -> None:
    keys = Keys()
    assert keys.remember("a", "k")[0] != keys.remember("b", "k")[0]


def test_the_oldest_keys_are_forgotten_first() -> None:
    keys = Keys(most=2)
    for key in ("one", "two", "three"):
        keys.remember("a", key)
    assert not keys.remember("a", "three")[1]
    assert not keys.remember("a", "two")[1]
    assert keys.remember("a", "one")[1]


def test_the_keys_of_a_forgotten_account_are_new_again() -> None:
    keys = Keys()
    keys.remember("a", "k")
    keys.remember("b", "k")
    keys.forget("a")
    assert keys.remember("a", "k")[1]
    assert not keys.remember("b", "k")[1]


def test_a_handle_is_good_for_its_own_account_only() -> None:
    shelf = Shelf()
    shelf.put(upload("h"), b"png")
    assert shelf.knows("h", "a")
    assert not shelf.knows("h", "b")
    shelf.forget("a")
    assert not shelf.knows("h", "a")
    assert shelf.content("h") is None


def test_the_oldest_bytes_go_first_and_their_handle_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(media, "MAX_KEPT_BYTES", 5)
    shelf = Shelf()
    shelf.put(upload("one"), b"png")
    shelf.put(upload("two"), b"png")
    assert shelf.content("one") is None
    assert shelf.content("two") == b"png"
    assert shelf.knows("one", "a")


def test_the_oldest_handles_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(media, "MAX_HANDLES", 1)
    shelf = Shelf()
    shelf.put(upload("one"), b"png")
    shelf.put(upload("two"))
    assert not shelf.knows("one", "a")
    assert shelf.content("one") is None
    assert shelf.knows("two", "a")
