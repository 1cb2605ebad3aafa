"""The application that serves files, asked as Daphne asks it."""

import asyncio
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.utils import timezone
from pytest_django import Settings

from accounts.models import Account, User
from delivery.file_addresses import serving, tokens
from delivery.file_addresses.serving import Files, Requests
from delivery.file_addresses.tokens import Ticket
from tests.factories import AccountFactory, RunFactory

BASE = "http://10.0.0.5:8000"


@pytest.fixture(autouse=True)
def _set_up(settings: Settings, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let files be asked for without a database, but where a test is about that."""
    settings.FILES_URL = BASE
    if request.node.get_closest_marker("django_db") is None:
        monkeypatch.setattr(serving, "_still_wanted", lambda _: True)
    serving.requests = Requests()
    serving.places.cache_clear()


@dataclass
class Asked:
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    whole: bool = False
    cut: bool = False


async def _elsewhere(*_: Any) -> None:
    raise AssertionError("Django was asked.")


async def ask(
    path: str,
    *,
    method: str = "GET",
    client: str = "10.0.0.9",
    headers: Mapping[str, str] | None = None,
    leaves_after: int | None = None,
) -> Asked:
    found, pieces, gone = Asked(), 0, asyncio.Event()

    async def send(message: Mapping[str, Any]) -> None:
        nonlocal pieces
        if message["type"] == "http.response.start":
            found.status = message["status"]
            found.headers = {name.decode(): value.decode() for name, value in message["headers"]}
            return
        found.body += message["body"]
        found.whole = not message["more_body"]
        pieces += 1
        if pieces == leaves_after:
            gone.set()
            await asyncio.sleep(0.01)

    async def receive() -> Mapping[str, Any]:
        await gone.wait()
        return {"type": "http.disconnect"}

    def cut() -> None:
        found.cut = True

    scope = {
        "type": "http",
        "method": method,
        "path": path.removeprefix(BASE),
        "headers": [(name.lower().encode(), value.encode()) for name, value in (headers or {}).items()],
        "client": [client, 5000],
        "extensions": {"paceline.cut": cut},
    }
    await Files(_elsewhere)(scope, receive, send)
    return found


@dataclass(frozen=True)
class Stored:
    """A file in the storage."""

    name: str
    content: bytes

    @property
    def path(self) -> Path:
        return Path(default_storage.path(self.name))


def stored(size: int = 100) -> Stored:
    content = uuid4().bytes * (size // 16 + 1)
    return Stored(default_storage.save(f"ab/{uuid4().hex}", ContentFile(content)), content)


_accounts = count(1)


def ticket_of(file: Stored, run_id: int | None = None, account_id: int | None = None) -> Ticket:
    return Ticket(
        file=file.name,
        content_type="image/png",
        account_id=account_id or next(_accounts),
        run_id=run_id,
        until=int(time.time()) + 600,
    )


def get(ticket: Ticket, **how: Any) -> Asked:
    return asyncio.run(ask(tokens.url_of(ticket), **how))


def test_a_file_comes_whole_to_whoever_has_its_address() -> None:
    media = stored(3 * serving.PIECE)
    found = get(ticket_of(media))
    assert (found.status, found.whole) == (200, True)
    assert found.body == media.content
    assert found.headers["content-length"] == str(len(media.content))
    assert found.headers["content-type"] == "image/png"


def test_the_head_alone_has_the_same_headers_and_no_body() -> None:
    ticket = ticket_of(stored())
    whole, head = get(ticket), get(ticket, method="HEAD")
    assert (head.status, head.body, head.whole) == (200, b"", True)
    assert head.headers == whole.headers


def test_a_part_of_the_file_comes_where_it_is_asked_for() -> None:
    media = stored(2 * serving.PIECE)
    found = get(ticket_of(media), headers={"Range": "bytes=10-300000"})
    assert (found.status, found.body) == (206, media.content[10:300_001])
    known = get(ticket_of(media), headers={"If-None-Match": found.headers["etag"]})
    assert (known.status, known.body, known.whole) == (304, b"", True)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_nothing_else_can_be_done_with_an_address(method: str) -> None:
    found = get(ticket_of(stored()), method=method)
    assert (found.status, found.headers["allow"], found.body) == (405, "GET, HEAD", b"")


@pytest.mark.parametrize(
    "path", ["/files/", "/files/x/file.png", "/files/../accounts/", "/files/%2e%2e/x", "/files/a/b/c"]
)
def test_what_is_no_address_is_not_found(path: str) -> None:
    found = asyncio.run(ask(path))
    assert (found.status, found.body) == (404, b"")


def test_everything_else_is_for_django() -> None:
    with pytest.raises(AssertionError, match="Django"):
        asyncio.run(ask("/accounts/"))


def test_an_address_is_good_until_its_end(settings: Settings) -> None:
    ticket = ticket_of(stored())
    assert get(ticket).status == 200
    assert get(replace(ticket, until=int(time.time()))).status == 410
    settings.FILES_URL = ""
    path = tokens.url_of(ticket)
    assert asyncio.run(ask(path)).status == 404


@pytest.mark.django_db(transaction=True)
def test_an_address_ends_with_its_account_its_run_and_its_owner() -> None:
    account = AccountFactory.create()
    run = RunFactory.create(reminder__owner=account.owner)
    others = AccountFactory.create()
    ticket = ticket_of(stored(), run.pk, account.pk)
    wrong = [
        replace(ticket, run_id=run.pk + 1000),
        replace(ticket, account_id=others.pk + 1000),
        replace(
            ticket, account_id=others.pk
        ),  # the run is somebody else's, as after an account was given away
    ]
    assert [get(each).status for each in [ticket, replace(ticket, run_id=None), *wrong]] == [200, 200] + [
        410
    ] * 3
    Account.objects.filter(pk=account.pk).update(archived_at=timezone.now())
    assert get(ticket).status == 410
    Account.objects.filter(pk=account.pk).update(archived_at=None)
    User.objects.filter(pk=account.owner_id).update(is_active=False)
    assert get(ticket).status == 410


def test_a_file_that_is_deleted_is_gone_and_one_that_cannot_be_read_comes_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    media = stored()
    ticket = ticket_of(media)
    with monkeypatch.context() as patched:
        patched.setattr(default_storage, "open", unreadable)
        assert get(ticket).status == 503
    media.path.unlink()
    assert get(ticket).status == 410
    assert get(replace(ticket, file="../../etc/passwd")).status in {404, 410, 503}


def unreadable(*_: object) -> object:
    raise PermissionError


@pytest.mark.parametrize(
    ("client", "forwarded", "may"),
    [
        ("10.0.0.9", "", True),
        ("10.0.0.10", "", False),
        ("::ffff:10.0.0.9", "", True),
        ("127.0.0.1", "10.0.0.9", True),  # a proxy of ours
        ("127.0.0.1", "6.6.6.6", False),
        ("127.0.0.1", "", False),
        ("6.6.6.6", "10.0.0.9", False),  # says so itself
        ("not an address", "", False),
    ],
)
def test_files_may_be_for_the_gateways_alone(
    settings: Settings, client: str, forwarded: str, may: bool
) -> None:
    settings.FILES_FROM = ["10.0.0.9/32"]
    headers = {"X-Forwarded-For": forwarded} if forwarded else {}
    assert get(ticket_of(stored()), client=client, headers=headers).status == (200 if may else 404)


def test_an_account_asks_for_so_many_files_in_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "PER_MINUTE", 2)
    ticket, other = ticket_of(stored()), ticket_of(stored())
    assert [get(ticket).status for _ in range(3)] == [200, 200, 429]
    assert get(other).status == 200


def test_one_account_cannot_take_all_places(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.FILES_READERS = 4
    monkeypatch.setattr(serving, "PLACE_SECONDS", 0.1)
    ticket, other = ticket_of(stored()), ticket_of(stored())
    with serving.places().place(ticket.account_id):
        assert get(ticket).status == 503
        assert get(other).status == 200
    assert get(ticket).status == 200
    assert serving.places().taken(ticket.account_id) == 0


def test_a_reader_who_leaves_frees_the_place() -> None:
    ticket = ticket_of(stored(10 * serving.PIECE))
    found = get(ticket, leaves_after=2)
    assert not found.whole
    assert len(found.body) <= 3 * serving.PIECE
    assert serving.places().taken(ticket.account_id) == 0


def test_a_reader_who_is_too_slow_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "SECONDS", 0.0)
    found = get(ticket_of(stored(3 * serving.PIECE)))
    assert (found.cut, found.whole) == (True, False)


def test_a_file_that_ends_too_early_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever reads it must not take a part for the whole."""
    media = stored(3 * serving.PIECE)
    begin = serving._begin

    async def shorten(*how: Any, **more: Any) -> None:
        os.truncate(media.path, serving.PIECE)
        await begin(*how, **more)

    monkeypatch.setattr(serving, "_begin", shorten)
    found = get(ticket_of(media))
    assert (found.status, found.cut, found.whole) == (200, True, False)
