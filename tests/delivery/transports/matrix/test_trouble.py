"""A run through the engine to a real homeserver that throttles, and that is down for a while."""

import time
from collections.abc import Callable
from urllib.parse import quote

import pytest
from pytest_django import Settings

from accounts.models import Account
from delivery.engine import pump
from delivery.models import Run
from delivery.states import RunStatus
from tests.delivery.stage import Stage, add_up, counted
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


def ended(run: Run) -> Callable[[], bool]:
    def has() -> bool:
        run.refresh_from_db()
        return run.status != RunStatus.RUNNING

    return has


def said_in(home: Homeserver, room: str) -> int:
    path = f"/_synapse/admin/v1/rooms/{quote(room)}/messages?dir=f&limit=100"
    events = home.synapse.ask("GET", path, token=home.synapse.admin_token)["chunk"]
    return sum(event["type"] == "m.room.message" for event in events)


def test_a_storm_of_429_and_a_restart_fail_no_room(stage: Stage, quick: Settings, synapse: Synapse) -> None:
    quick.BACKOFF_BASE_SECONDS, quick.TROUBLE_WAIT_MAX_MINUTES = 0.1, 0.5 / 60
    quick.SEND_TIMEOUT_SECONDS, quick.PUMP_SECONDS = 10, 1
    home = Homeserver(synapse)
    rooms = [home.make_room(f"Class {number}") for number in range(6)]
    synapse.limit(home.user_id, per_second=1, burst=1)
    run, account = room_run(stage, home, rooms)

    pumped(run, account, lambda: kind_of(account) == "rate_limited")
    assert "429" in account.trouble
    assert account.slow_factor > 1
    assert "failed" not in counted(run)

    synapse.kill()
    try:
        pumped(run, account, lambda: kind_of(account) == "unreachable" and account.trouble_count >= 4)
        assert account.trouble == f"connection refused, 127.0.0.1:{synapse.port}"
        assert run.status == RunStatus.RUNNING
        assert not run.targets.filter(attempts__gt=0).exists()
    finally:
        synapse.start()

    pumped(run, account, ended(run))
    assert (run.status, counted(run), kind_of(account)) == (RunStatus.SUCCESS, {"sent": 6}, "")
    assert [said_in(home, room) for room in rooms] == [1] * 6
    add_up(run)
