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


def test_the_folder_shows_the_kinds_and_keeps_their_parts_in_folders() -> None:
    modules = {module.stem for module in Path(transports.__file__).parent.glob("*.py")}
    assert modules == {"__init__", "base", *transports.kinds()}


def test_without_a_session_nothing_can_be_asked() -> None:
    made = transports.make("sandbox", {"account": "a", "token": "t"}, None)
    with pytest.raises(RuntimeError, match="only reads webhooks"):
        _ = made.session
