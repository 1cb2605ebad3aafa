"""Files as they are served: Daphne, the engine, and a gateway that fetches."""

import http.client
import socket
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from pytest_django import Settings
from redis import Redis

from accounts.models import Account
from delivery.file_addresses import memory, tokens
from delivery.file_addresses.memory import Experience
from delivery.file_addresses.tokens import Ticket
from delivery.models import Run
from delivery.states import RunStatus, TargetStatus
from reminders.fire import fire
from reminders.models import Media
from sandbox import witness
from sandbox.log import Line
from tests.browser.site import Site
from tests.delivery.stage import Stage, serve
from tests.factories import AccountFactory, MediaFactory, PartFactory, ReminderFactory

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("files-by-daphne")]
LARGE = 48 * 2**20


@pytest.fixture(scope="module")
def site(django_db_setup: None, redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("served")
    with Site(FILES_URL="http://files.example", MEDIA_ROOT=str(folder), ALLOWED_HOSTS="127.0.0.1") as site:
        site.media = folder  # type: ignore[attr-defined]
        yield site


@pytest.fixture(autouse=True)
def _set_up(site: Site, settings: Settings, redis: Redis) -> None:
    settings.FILES_URL = site.url
    settings.MEDIA_ROOT = site.media  # type: ignore[attr-defined]


def address(content: bytes) -> str:
    ticket = Ticket(
        file=default_storage.save(f"ab/{uuid4().hex}", ContentFile(content)),
        content_type="video/mp4",
        account_id=AccountFactory.create().pk,
        run_id=None,
        until=int(time.time()) + 600,
    )
    return tokens.url_of(ticket)


def connected(url: str, *, buffer: int = 0) -> socket.socket:
    """Return a connection on which a request for the address was sent, and nothing read."""
    place = urlsplit(url)
    line = socket.socket()
    if buffer:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    line.connect((place.hostname, place.port))
    line.sendall(f"GET {place.path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    return line


def memory_of(site: Site) -> int:
    status = Path(f"/proc/{site._process.pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) * 1024


def asked(url: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
    place = urlsplit(url)
    with closing(http.client.HTTPConnection(place.netloc, timeout=20)) as line:
        line.request(
            method, place.path, headers={name.replace("_", "-"): each for name, each in headers.items()}
        )
        answer = line.getresponse()
        return answer.status, {name.lower(): each for name, each in answer.getheaders()}, answer.read()


def test_a_file_comes_over_the_network_whole_in_parts_and_not_again() -> None:
    content = uuid4().bytes * 100_000
    url = address(content)
    status, headers, body = asked(url, host="whatever.example")  # a gateway names us as it knows us
    assert (status, body) == (200, content)
    assert headers["content-length"] == str(len(content))
    assert "set-cookie" not in headers
    assert asked(url, Range="bytes=5-9")[::2] == (206, content[5:10])
    assert asked(url, If_None_Match=headers["etag"])[::2] == (304, b"")
    status, head, body = asked(url, "HEAD")
    assert (status, head["content-length"], body) == (200, str(len(content)), b"")
    assert asked(url.replace("/files/", "/files/x"))[::2] == (404, b"")


def test_readers_who_read_nothing_take_no_memory_and_hold_up_nobody(site: Site) -> None:
    small, large = address(b"small" * 100), address(bytes(LARGE))
    before = memory_of(site)
    lines = [connected(large, buffer=4096) for _ in range(8)]
    try:
        time.sleep(1.0)
        started = time.monotonic()
        assert asked(small)[0] == 200
        assert asked(f"{site.url}/healthz")[0] == 200
        assert time.monotonic() - started < 5
        assert memory_of(site) - before < LARGE
    finally:
        for line in lines:
            line.close()


def test_a_slow_reader_gets_all_of_it_in_the_end() -> None:
    content = uuid4().bytes * (3 * 2**20 // 16)
    with closing(connected(address(content), buffer=8192)) as line:
        found = b""
        while len(found) < len(content):
            piece = line.recv(65536)
            assert piece
            found += piece
        head, _, body = found.partition(b"\r\n\r\n")
        while len(body) < len(content):
            body += line.recv(65536)
    assert head.startswith(b"HTTP/1.1 200")
    assert body == content


# The engine, and a gateway that fetches


def run_of(stage: Stage, media: Media, *, to: int = 5) -> tuple[Run, Account]:
    account = stage.account()
    account.credentials = {**account.credentials, "files": "fetched", "idempotent": "no"}
    account.save()
    reminder = ReminderFactory.create(
        owner=stage.owner,
        accounts=[account],
        recipients=stage.recipients(to),
        parts=0,
        window_start_hour=0,
        window_end_hour=24,
    )
    PartFactory.create(reminder=reminder, kind="media", text="Look", media=media)
    return fire(reminder), account


def lines_of(stage: Stage, account: Account, kind: str) -> list[Line]:
    name = account.credentials["account"]
    return [
        line for line in witness.read(stage.gateway.log) if line["account"] == name and line["kind"] == kind
    ]


def picture(stage: Stage) -> Media:
    return MediaFactory.create(owner=stage.owner, content=uuid4().bytes * 10_000, stored=True)


def test_the_file_of_a_run_does_not_pass_through_the_worker(stage: Stage, redis: Redis) -> None:
    media = picture(stage)
    run, account = run_of(stage, media)
    run = serve(run, account)
    assert run.status == RunStatus.SUCCESS
    sent = lines_of(stage, account, "message")
    fetched = lines_of(stage, account, "fetch")
    assert {line["media"] for line in sent} == {media.sha256}
    assert {line["bytes"] for line in fetched} == {media.size}
    # While the first address is tried, the others hold their file.
    assert 1 <= len(fetched) <= 5
    assert memory.recall(redis, account.pk).works


def test_once_an_address_has_worked_no_file_passes_through_the_worker(stage: Stage, redis: Redis) -> None:
    run, account = run_of(stage, picture(stage))
    memory.remember(redis, account.pk, Experience(works=True))
    assert serve(run, account).status == RunStatus.SUCCESS
    assert len(lines_of(stage, account, "fetch")) == len(lines_of(stage, account, "message")) == 5


def test_a_gateway_that_cannot_reach_us_gets_the_file_inside_and_everything_arrives_once(
    stage: Stage, redis: Redis
) -> None:
    media = picture(stage)
    run, account = run_of(stage, media)
    stage.behave(account, cannot_fetch=True)
    run = serve(run, account)
    assert run.status == RunStatus.SUCCESS
    delivered = stage.delivered(account)
    assert len({line["to"] for line in delivered}) == len(delivered) == 5
    assert {line["media"] for line in delivered} == {media.sha256}
    assert len(lines_of(stage, account, "fetch")) == 1
    known = memory.recall(redis, account.pk)
    assert (known.failures, known.words) == (1, "The address cannot be reached from here.")


def test_a_gateway_that_breaks_after_it_took_an_address_leaves_a_doubt_and_no_double(
    stage: Stage, redis: Redis
) -> None:
    run, account = run_of(stage, picture(stage), to=3)
    stage.behave(account, cut=1)
    run = serve(run, account)
    states = set(run.targets.values_list("status", flat=True))
    assert TargetStatus.UNCONFIRMED in states
    delivered = stage.delivered(account)
    assert len({line["to"] for line in delivered}) == len(delivered)
    assert memory.recall(redis, account.pk).failures == 1
