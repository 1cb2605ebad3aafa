"""The sandbox may run for weeks: what it remembers has an end."""

import pytest

from sandbox import media
from sandbox.keys import Keys
from sandbox.media import Upload, Uploads


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
    uploads = Uploads()
    uploads.put(upload("h"), b"png")
    assert uploads.knows("h", "a")
    assert not uploads.knows("h", "b")
    uploads.forget("a")
    assert not uploads.knows("h", "a")
    assert uploads.content("h") is None


def test_the_oldest_bytes_go_first_and_their_handle_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(media, "MAX_KEPT_BYTES", 5)
    uploads = Uploads()
    uploads.put(upload("one"), b"png")
    uploads.put(upload("two"), b"png")
    assert uploads.content("one") is None
    assert uploads.content("two") == b"png"
    assert uploads.knows("one", "a")


def test_the_oldest_handles_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(media, "MAX_HANDLES", 1)
    uploads = Uploads()
    uploads.put(upload("one"), b"png")
    uploads.put(upload("two"))
    assert not uploads.knows("one", "a")
    assert uploads.content("one") is None
    assert uploads.knows("two", "a")
