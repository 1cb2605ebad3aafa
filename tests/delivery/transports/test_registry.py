from pathlib import Path

import aiohttp
import pytest

from accounts.models.account import Channel
from delivery import transports
from delivery.transports.base import CredentialsError
from delivery.transports.http.exchange import open_session


async def test_a_kind_is_made_by_its_name() -> None:
    async with open_session() as session:
        made = transports.make("sandbox", {"account": "a", "token": "t"}, session)
    assert made.kind == "sandbox"
    assert made.credentials["base_url"] == "http://127.0.0.1:8081"


async def test_an_unknown_name_is_refused() -> None:
    async with open_session() as session:
        with pytest.raises(transports.UnknownKindError, match="pigeon"):
            transports.make("pigeon", {}, session)


async def test_a_value_that_is_no_choice_is_refused() -> None:
    async with aiohttp.ClientSession() as session:
        with pytest.raises(CredentialsError, match="Idempotency keys"):
            transports.make("sandbox", {"account": "a", "token": "t", "idempotent": "perhaps"}, session)


def test_every_kind_can_fill_a_form() -> None:
    for name, kind in transports.kinds().items():
        assert kind.kind == name
        assert kind.label
        assert kind.about.endswith(".")
        assert kind.channels <= set(Channel.values)
        assert kind.channels
        assert all(field.name and field.label for field in kind.credential_fields)
        assert kind.default_capabilities.actions


def test_every_kind_has_a_folder_of_its_own() -> None:
    root = Path(transports.__file__).parent
    assert {module.stem for module in root.glob("*.py")} == {"__init__", "base", "leaving"}
    assert all((root / kind / "send.py").is_file() for kind in transports.kinds())


def test_without_a_session_nothing_can_be_asked() -> None:
    made = transports.make("sandbox", {"account": "a", "token": "t"}, None)
    with pytest.raises(RuntimeError, match="only reads webhooks"):
        _ = made.session


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("<html><head><title>502 Bad Gateway</title></head></html>", "502 Bad Gateway"),
        ("Cannot read id\n    at Session.send (/app/session.js:10:5)\n    at next", "Cannot read id"),
        ('it broke\n  File "/app/main.py", line 3, in send', "it broke"),
        ("Traceback (most recent call last): secrets", ""),
        ("<nobody@example.com>: recipient rejected", "<nobody@example.com>: recipient rejected"),
        ("1 < 2 and 3 > 2", "1 < 2 and 3 > 2"),
        ("a token of ours: a-long-token", "a token of ours: ***"),
        ("x" * 10**6, "x" * 200),
    ],
)
def test_what_a_service_says_is_shown_short_and_plain(said: str, shown: str) -> None:
    made = transports.make("sandbox", {"account": "a", "token": "a-long-token"}, None)
    assert made.safe(said) == shown


@pytest.mark.parametrize("said", ["<" * 10**6, "<a " * 10**5, "\n" * 10**6, "\n\t" * 10**5])
def test_hostile_words_take_no_time(said: str) -> None:
    made = transports.make("sandbox", {"account": "a", "token": "a-long-token"}, None)
    assert len(made.safe(said)) <= 200
