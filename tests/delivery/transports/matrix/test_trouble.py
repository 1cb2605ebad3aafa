"""A run through the engine to a real homeserver that throttles, is down, and sits behind a proxy that says so."""

import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import quote

import pytest
from pytest_django import Settings

from accounts.models import Account
from delivery.engine import pump
from delivery.models import Run
from delivery.states import RunStatus
from tests.delivery.stage import Stage, add_up, counted, sentence_of
from tests.delivery.transports.homeserver import Homeserver
from tests.delivery.transports.synapse import Synapse
from tests.factories import AccountFactory, LimitFactory, RecipientFactory

pytestmark = pytest.mark.xdist_group("synapse")  # one homeserver is enough
PATIENCE = 90.0  # seconds; the machine may be slow, and the homeserver starts anew


def room_run(stage: Stage, home: Homeserver, rooms: list[str]) -> tuple[Run, Account]:
    account = AccountFactory.create(
        owner=stage.owner,
        channel="matrix",
        transport="matrix",
        credentials={"base_url": f"http://127.0.0.1:{home.synapse.port}", "access_token": home.token},
    )
    LimitFactory.create(account=account, per_minute=60_000)
    people = [
        RecipientFactory.create(owner=stage.owner, channel="matrix", kind="room", address=room)
        for room in rooms
    ]
    return stage.fire(account, to=people, channel="matrix"), account


def pumped(run: Run, account: Account, until: Callable[[], bool]) -> None:
    """Pump the account, as wake-ups would, until something is so."""
    ends = time.monotonic() + PATIENCE
    while not until():
        assert time.monotonic() < ends, (counted(run), kind_of(account), account.trouble)
        pump.pump(account.pk)
    run.refresh_from_db()


def kind_of(account: Account) -> str:
    account.refresh_from_db()
    return account.trouble_kind


def account_trouble(account: Account) -> str:
    account.refresh_from_db()
    return account.trouble


def ended(run: Run) -> Callable[[], bool]:
    def has() -> bool:
        run.refresh_from_db()
        return run.status != RunStatus.RUNNING

    return has


def said_in(home: Homeserver, room: str) -> int:
    path = f"/_synapse/admin/v1/rooms/{quote(room)}/messages?dir=f&limit=100"
    events = home.synapse.ask("GET", path, token=home.synapse.admin_token)["chunk"]
    return sum(event["type"] == "m.room.message" for event in events)


def says(account: Account, pattern: str) -> None:
    sentence = sentence_of(account)
    assert re.match(pattern, sentence), sentence


class Proxy(BaseHTTPRequestHandler):
    """Answers in place of a homeserver that is down, as nginx does."""

    def _refuse(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(502)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_POST = do_PUT = _refuse  # noqa: N815 - the names that http.server asks for

    def log_message(self, *_: object) -> None:
        return


@contextmanager
def proxy_without_its_server(port: int) -> Iterator[None]:
    with ThreadingHTTPServer(("127.0.0.1", port), Proxy) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield
        server.shutdown()
        thread.join()


def test_a_storm_of_429_of_502_and_a_restart_fail_no_room(
    stage: Stage, quick: Settings, synapse: Synapse
) -> None:
    quick.BACKOFF_BASE_SECONDS, quick.TROUBLE_WAIT_MAX_MINUTES = 0.1, 0.5 / 60
    quick.SEND_TIMEOUT_SECONDS, quick.PUMP_SECONDS = 10, 1
    home = Homeserver(synapse)
    rooms = [home.make_room(f"Class {number}") for number in range(6)]
    synapse.limit(home.user_id, per_second=1, burst=1)
    run, account = room_run(stage, home, rooms)

    pumped(run, account, lambda: kind_of(account) == "rate_limited")
    says(account, r"The Matrix server asked us to slow down at \d\d:\d\d \(.*429.*\)\.")
    assert account.slow_factor > 1
    assert "failed" not in counted(run)

    synapse.kill()
    try:
        pumped(run, account, lambda: kind_of(account) == "unreachable" and account.trouble_count >= 4)
        refused = f"connection refused, 127.0.0.1:{synapse.port}"
        says(account, rf"No answer from the Matrix server since \d\d:\d\d \({refused}\)\.")
        assert run.status == RunStatus.RUNNING
        assert not run.targets.filter(attempts__gt=0).exists()
        with proxy_without_its_server(synapse.port):
            pumped(run, account, lambda: "502" in account_trouble(account) and account.trouble_count >= 8)
            says(account, r"The Matrix server answers with errors since \d\d:\d\d \(.*502.*\)\.")
            assert "failed" not in counted(run)
            assert "unconfirmed" not in counted(run)
    finally:
        synapse.start()

    pumped(run, account, ended(run))
    assert (run.status, counted(run), kind_of(account)) == (RunStatus.SUCCESS, {"sent": 6}, "")
    assert sentence_of(account) == "Ready. Nothing to send."
    assert [said_in(home, room) for room in rooms] == [1] * 6
    add_up(run)
