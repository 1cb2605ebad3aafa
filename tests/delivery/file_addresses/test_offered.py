"""Which messages hold the address of their file, and what is learned from how they fared."""

import asyncio
import time
from dataclasses import replace

import pytest
from pytest_django import Settings
from redis import Redis, RedisError

from delivery.file_addresses import memory, tokens
from delivery.file_addresses.memory import FIRST_SECONDS, MOST_SECONDS, Experience
from delivery.file_addresses.offered import Addresses, addresses_for
from delivery.parts import FrozenPart
from delivery.transports.sandbox.send import SandboxTransport
from delivery.transports.waha.send import WahaTransport

PART = FrozenPart(kind="media", sha256="ab" * 32, file="ab/abc", filename="a.png", content_type="image/png")
WAHA = WahaTransport({"base_url": "http://10.0.0.9:3000", "api_key": "k"}, None)
SANDBOX = SandboxTransport({"account": "a", "token": "t"}, None)


@pytest.fixture(autouse=True)
def _set_up(settings: Settings, redis: Redis) -> None:
    settings.FILES_URL = "http://10.0.0.5:8000"


def made(experience: Experience | None = None, *, patience: float = 60) -> "tuple[Addresses, Offer]":
    addresses = Addresses(7, experience or Experience())
    return addresses, Offer(addresses, patience)


class Offer:
    def __init__(self, addresses: Addresses, patience: float) -> None:
        self._of = addresses.of_run(12, patience=patience)

    def __call__(self) -> str:
        found = self._of(PART)
        return found.url if found else ""


def test_a_run_names_its_file_its_account_and_itself() -> None:
    _, offer = made()
    ticket = tokens.read(offer().removeprefix("http://10.0.0.5:8000"))
    assert (ticket.file, ticket.account_id, ticket.run_id) == ("ab/abc", 7, 12)
    assert 3500 < ticket.until - time.time() <= 3600


async def test_until_an_address_has_worked_one_message_at_a_time_tries_it(redis: Redis) -> None:
    addresses, offer = made()
    first = offer()
    assert first
    assert not offer()
    addresses.worked()
    assert offer() == offer() == first
    await asyncio.gather(*addresses._keeping)
    assert memory.recall(redis, 7) == Experience(works=True)


def test_a_message_that_never_comes_back_ends_no_trying() -> None:
    _, offer = made(patience=0.0)
    assert offer()
    assert offer()


@pytest.mark.parametrize("how", ["failed", "in_doubt"])
async def test_after_a_failure_files_go_inside_for_a_while(redis: Redis, how: str) -> None:
    addresses, offer = made(Experience(works=True))
    assert offer()
    getattr(addresses, how)("no way")
    getattr(addresses, how)("of another message in flight")
    assert not offer()
    await asyncio.gather(*addresses._keeping)
    kept = memory.recall(redis, 7)
    assert (kept.failures, kept.words, kept.works) == (1, "no way", False)
    assert kept.until - time.time() == pytest.approx(FIRST_SECONDS, abs=5)
    # Another worker, and then the time is over.
    assert not made(kept)[1]()
    assert made(replace(kept, until=time.time() - 1))[1]()


def test_each_further_failure_waits_longer_up_to_a_day() -> None:
    found, waits = Experience(), []
    for _ in range(8):
        found = found.after_failure("no", now=1000.0)
        waits.append(found.until - 1000.0)
    assert waits[:4] == [FIRST_SECONDS * 2**n for n in range(4)]
    assert waits[-1] == MOST_SECONDS
    assert found.since == 1000.0


def test_only_services_that_fetch_get_addresses_and_only_where_it_is_set_up(settings: Settings) -> None:
    assert addresses_for(7, WAHA) is not None
    assert addresses_for(7, SANDBOX) is None
    settings.FILES_URL = ""
    assert addresses_for(7, WAHA) is None


def test_what_another_version_remembered_is_forgotten(redis: Redis) -> None:
    for odd in (b"[]", b"{", b'{"later": 1}', b"7"):
        redis.set(memory._key(7), odd)
        assert memory.recall(redis, 7) == Experience()


def test_another_address_of_this_installation_is_tried_anew(redis: Redis, settings: Settings) -> None:
    memory.remember(redis, 7, Experience().after_failure("no", now=time.time()))
    assert memory.recall(redis, 7).failures == 1
    settings.FILES_URL = "http://10.0.0.6:8000"
    assert memory.recall(redis, 7) == Experience()


def test_a_person_who_checks_the_connection_has_it_tried_anew(redis: Redis) -> None:
    memory.remember(redis, 7, Experience().after_failure("no", now=time.time()))
    memory.forget(7)
    assert memory.recall(redis, 7) == Experience()


class Away:
    def get(self, _: str) -> bytes:
        raise RedisError


def test_without_redis_files_go_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("delivery.file_addresses.offered.client", Away)
    monkeypatch.setattr("delivery.file_addresses.memory.client", Away)
    assert addresses_for(7, WAHA) is None
    assert memory.shown(7) is None
