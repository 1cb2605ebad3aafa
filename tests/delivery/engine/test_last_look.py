"""The last look is right before the request leaves: after number check, connect and a slow answer (W3, R5, C6)."""

import asyncio
import io
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from pytest_django import Settings

from accounts.models import Account, Recipient
from accounts.recipients import consent
from activity.models import Attempt
from config.redis.client import client
from delivery import lifecycle
from delivery.engine import last_look, pump
from delivery.engine.last_look import LastLook, Leave, Moment
from delivery.engine.lease import lease_key
from delivery.engine.loop import Landed, SendRequest, _carry
from delivery.engine.recording import BEGIN, Begun, Intent
from delivery.engine.sql import Line, Query
from delivery.models import Run, RunTarget
from delivery.outcomes import HeldBack, Outcome
from delivery.states import PauseReason
from delivery.transports.base import Message, Timeouts
from delivery.transports.http.exchange import Answer, Request, exchange, open_session
from delivery.transports.leaving import HeldBackError
from delivery.transports.sandbox.send import SandboxTransport
from tests.delivery.door import Door
from tests.delivery.stage import Stage, add_up, counted, only_target, serve
from tests.delivery.transports.http.test_exchange import served
from tests.factories import RecipientFactory

CREDENTIALS = {
    "base_url": "http://127.0.0.1:9",
    "account": "one",
    "token": "a-token-of-the-test",
    "idempotent": "no",
}
SOON = 60.0  # seconds after which a test gives up


@pytest.fixture
def patient(quick: Settings) -> Settings:
    """Long enough timeouts for a connection that takes seconds."""
    quick.SEND_TIMEOUT_SECONDS, quick.CONNECT_TIMEOUT_SECONDS = 24, 12
    quick.LEASE_SECONDS, quick.PUMP_SECONDS = 4, 5
    return quick


def groups(stage: Stage, count: int) -> list[Recipient]:
    """Recipients whose numbers nobody checks."""
    return [
        RecipientFactory.create(owner=stage.owner, kind="group", address=f"1203630000000{number}@g.us")
        for number in range(count)
    ]


def behind(account: Account, door: Door) -> Account:
    account.credentials = {**account.credentials, "base_url": door.url}
    account.save()
    return account


@contextmanager
def pumped(account: Account) -> Iterator[None]:
    """A pump is at work meanwhile, and has ended afterwards."""
    thread = threading.Thread(target=pump.pump, args=(account.pk,))
    thread.start()
    try:
        yield
    finally:
        thread.join(SOON)
    assert not thread.is_alive()


def until(happened: Callable[[], object]) -> None:
    deadline = time.monotonic() + SOON
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def has_begun(run: Run) -> bool:
    return RunTarget.objects.filter(run=run, begun_at__isnull=False).exists()


def pause(run: Run) -> None:
    lifecycle.pause(run, reason=PauseReason.OPERATOR)


def opt_out(run: Run) -> None:
    consent.opt_out(Recipient.objects.get(targets__run=run), how="Wrote STOP.")


def close_now(run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(closes_at=datetime.now(UTC))


def stop_account(run: Run) -> None:
    lifecycle.stop_account(only_target(run).account, status=Account.Status.PAUSED, reason="held")


CHANGES: dict[str, tuple[Callable[[Run], object], set[str]]] = {
    "pause": (pause, {"pending"}),
    "cancel": (lifecycle.cancel, {"skipped"}),
    "opt-out": (opt_out, {"skipped"}),
    "window": (close_now, {"pending"}),
    "account stopped": (stop_account, {"pending"}),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_changes_while_a_connection_is_made_keeps_the_message_back(
    stage: Stage, patient: Settings, change: str
) -> None:
    happens, becomes = CHANGES[change]
    account = stage.account(idempotent=False)
    with Door(stage.gateway.url, closed=True) as door:
        behind(account, door)
        run = stage.fire(account, to=groups(stage, 1))
        with pumped(account):
            until(lambda: has_begun(run))
            happens(run)
            time.sleep(last_look.FRESH)
            door.open()
            until(lambda: not has_begun(run))
    assert stage.received(account) == []
    target = only_target(run)
    assert (target.status in becomes, target.attempts, target.begun_at) == (True, 0, None)
    assert not Attempt.objects.filter(run=run).exists()
    add_up(run)


def test_a_connection_that_takes_its_time_still_carries_the_message(stage: Stage, patient: Settings) -> None:
    account = stage.account(idempotent=False)
    with Door(stage.gateway.url, closed=True) as door:
        behind(account, door)
        run = stage.fire(account, to=groups(stage, 1))
        with pumped(account):
            until(lambda: has_begun(run))
            time.sleep(last_look.FRESH)
            door.open()
    assert counted(run) == {"sent": 1}
    assert Attempt.objects.get(run=run).attempt == 1
    assert len(stage.received(account)) == 1


@pytest.mark.parametrize("change", CHANGES)
def test_what_changes_while_a_number_is_checked_keeps_the_message_back(
    stage: Stage, patient: Settings, change: str
) -> None:
    happens, becomes = CHANGES[change]
    account = stage.account(idempotent=False)
    ada = RecipientFactory.create(owner=stage.owner, kind="person", address="+60123456789", name="Ada")
    with Door(stage.gateway.url, hold=b"/numbers/") as door:
        behind(account, door)
        run = stage.fire(account, to=[ada])
        with pumped(account):
            assert door.reached.wait(SOON)
            assert not has_begun(run), "the check comes before the intent"
            happens(run)
            door.let_go()
            until(lambda: only_target(run).status in becomes)
    assert stage.received(account) == []
    assert only_target(run).attempts == 0
    add_up(run)


def test_others_go_on_while_a_number_is_checked(stage: Stage, patient: Settings) -> None:
    account = stage.account(group_concurrency=1)
    ada = RecipientFactory.create(owner=stage.owner, kind="person", address="+60123456789", name="Ada")
    three = groups(stage, 3)
    with Door(stage.gateway.url, hold=b"/numbers/") as door:
        behind(account, door)
        run = stage.fire(account, to=[ada, *three])
        with pumped(account):
            assert door.reached.wait(SOON)
            until(lambda: len(stage.received(account)) == 3)
            door.let_go()
    assert counted(run) == {"sent": 4}
    assert stage.received(account)[-1]["to"] == ada.address


def test_a_number_check_that_gets_no_answer_is_not_waited_for_for_ever(
    stage: Stage, patient: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("delivery.engine.loop.PATIENCE", 0.3)
    account = stage.account()
    ada = RecipientFactory.create(owner=stage.owner, kind="person", address="+60123456789", name="Ada")
    with Door(stage.gateway.url, hold=b"/numbers/") as door:
        behind(account, door)
        run = serve(stage.fire(account, to=[ada]), account)
    assert counted(run) == {"sent": 1}


def test_a_late_answer_of_the_database_lets_nothing_leave_after_the_window(
    stage: Stage, quick: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL gave leave in time and stood still before it said so."""
    account = stage.account(idempotent=False)
    run = stage.fire(account, to=groups(stage, 3))
    closes = datetime.now(UTC) + timedelta(seconds=1.5)
    real = Line.run

    async def late(self: Line, query: Query[Any]) -> Any:
        answer = await real(self, query)
        if query.sql == BEGIN and datetime.now(UTC) < closes:
            await asyncio.sleep((closes - datetime.now(UTC)).total_seconds())
        return answer

    Run.objects.filter(pk=run.pk).update(closes_at=closes)
    monkeypatch.setattr(Line, "run", late)
    pump.pump(account.pk)
    assert stage.received(account) == []
    assert counted(run) == {"pending": 3}
    assert set(run.targets.values_list("attempts", flat=True)) == {0}
    add_up(run)


def test_a_pump_whose_lease_is_lost_while_it_connects_sends_nothing(stage: Stage, patient: Settings) -> None:
    account = stage.account(idempotent=False)
    patient.LEASE_SECONDS = 2
    with Door(stage.gateway.url, closed=True) as door:
        behind(account, door)
        run = stage.fire(account, to=groups(stage, 1))
        with pumped(account):
            until(lambda: has_begun(run))
            client().set(lease_key(account.pk), "another", px=60_000)
            time.sleep(1.0)  # more than one round of renewals
            door.open()
    assert stage.received(account) == []
    assert counted(run) == {"pending": 1}


def test_a_permit_that_was_not_used_is_given_back(stage: Stage, patient: Settings) -> None:
    account = stage.account(idempotent=False, limits={"per_day": 1})
    with Door(stage.gateway.url, closed=True) as door:
        behind(account, door)
        run = stage.fire(account, to=groups(stage, 1))
        with pumped(account):
            until(lambda: has_begun(run))
            pause(run)
            time.sleep(last_look.FRESH)
            door.open()
    lifecycle.resume(run)
    serve(run, account)
    assert counted(run) == {"sent": 1}


# The look itself.


class Desk:
    """The part of `Batches` that the look asks: it gives leave, refuses, fails or is slow."""

    def __init__(self, answer: Callable[[Intent], Begun | None]) -> None:
        self.answer = answer
        self.asked = 0
        self.slow = 0.0

    async def begin(self, intents: list[Intent], *, patience: float = 0.0) -> list[Begun | None]:
        self.asked += 1
        await asyncio.sleep(self.slow)
        return [self.answer(intent) for intent in intents]


def leave(intent: Intent, *, closes_in: float = 60.0, clock_ahead: float = 0.0) -> Begun:
    now = datetime.now(UTC)
    return Begun(
        target_id=intent.target_id,
        part=intent.part,
        fence=intent.fence,
        attempt=1,
        at=now,
        written=now,
        clock=now + timedelta(seconds=clock_ahead),
        closes_at=now + timedelta(seconds=closes_in),
    )


INTENT = Intent(target_id=1, part=0, fence=1, wished_at=datetime.now(UTC))


def look_with(
    desk: Desk,
    *,
    age: float = 0.0,
    lost: bool = False,
    suspended: float = 0.0,
    **values: float,
) -> LastLook:
    asked = Moment(monotonic=time.monotonic() - age, wall=time.time() - age - suspended)
    given = Leave(begun=leave(INTENT, **values), asked=asked)
    return LastLook(INTENT, given, batches=desk, lost=lambda: lost)  # type: ignore[arg-type]


def refused(look: LastLook) -> str:
    with pytest.raises(HeldBackError) as held:
        asyncio.run(look())
    return str(held.value)


def no_leave(_: Intent) -> None:
    return None


def test_fresh_leave_costs_no_question() -> None:
    desk = Desk(leave)
    asyncio.run(look_with(desk)())
    assert desk.asked == 0


@pytest.mark.parametrize("aged", [{"age": 5.0}, {"suspended": 5.0}], ids=["stood still", "was suspended"])
def test_old_leave_is_asked_for_again_by_whichever_clock_it_is_old(aged: dict[str, float]) -> None:
    desk = Desk(leave)
    look = look_with(desk, **aged)  # type: ignore[arg-type]
    before = look.leave.begun
    asyncio.run(look())
    assert desk.asked == 1
    assert look.leave.begun != before, "the ledger gets the moment of the last leave"
    assert "may not be sent" in refused(look_with(Desk(no_leave), **aged))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "values",
    [{"closes_in": 0.1}, {"closes_in": 3.0, "clock_ahead": 2.9}, {"closes_in": 0.9, "age": 0.8}],
    ids=["by this clock", "by the database's clock", "by the time since"],
)
def test_a_window_that_closes_within_the_guard_holds_back(quick: Settings, values: dict[str, float]) -> None:
    assert "window" in refused(look_with(Desk(leave), **values))  # type: ignore[arg-type]


@pytest.mark.parametrize("ahead", [-7.0, 7.0])
def test_a_clock_that_the_database_contradicts_holds_back(ahead: float) -> None:
    """The ledger would get a wrong time, by which no limit can be counted later."""
    assert "clocks" in refused(look_with(Desk(leave), clock_ahead=ahead))


def test_an_answer_that_took_its_time_is_no_wrong_clock(quick: Settings) -> None:
    quick.CLOCK_TOLERANCE_SECONDS, quick.WINDOW_GUARD_SECONDS = 1, 0
    desk = Desk(leave)
    asyncio.run(look_with(desk, clock_ahead=1.5, age=0.8)())
    assert desk.asked == 0


def test_a_lost_lease_holds_back() -> None:
    assert "another pump" in refused(look_with(Desk(leave), lost=True))


def test_a_database_that_fails_or_takes_too_long_holds_back(quick: Settings) -> None:
    def fails(_: Intent) -> Begun:
        raise psycopg.OperationalError("gone")

    assert "does not answer" in refused(look_with(Desk(fails), age=5))
    quick.LEASE_SECONDS = 1
    desk = Desk(leave)
    desk.slow = last_look.FRESH + 0.2
    assert "too long" in refused(look_with(desk, age=5))


def test_a_message_that_was_given_up_never_leaves() -> None:
    look = look_with(Desk(leave))
    assert not look.give_up()
    assert "given up" in refused(look)


def test_a_message_given_up_while_it_is_looked_at_has_not_left() -> None:
    desk = Desk(leave)
    desk.slow = 0.1
    look = look_with(desk, age=5)

    async def scene() -> None:
        looking = asyncio.create_task(look())
        await asyncio.sleep(0.02)
        assert look.give_up()
        with pytest.raises(HeldBackError):
            await looking

    asyncio.run(scene())


async def test_what_is_refused_before_the_end_of_its_file_has_not_left(quick: Settings) -> None:
    """The window closes while the file is under way: its service never gets the end of it."""
    bodies: list[bytes] = []

    async def handler(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await asyncio.sleep(1.5)
        with suppress(asyncio.IncompleteReadError):
            bodies.append(await reader.readexactly(2**23))

    class Slow(SandboxTransport):
        async def send(self, message: Message, key: str) -> Outcome:
            request = Request(method="POST", url=url, body=io.BytesIO(b"x" * 2**23))
            answer = await exchange(self.session, request, connect=1, total=10)
            assert not isinstance(answer, Answer)
            return answer

    landed: list[Landed] = []
    async with served(handler) as url, open_session() as session:
        quick.SEND_TIMEOUT_SECONDS = 10
        transport = Slow(CREDENTIALS, session, timeouts=Timeouts(connect=1, total=10, upload=10))
        look = look_with(Desk(leave), closes_in=1.0)
        message = Message(address="+60123456789", kind="text", text="Hello")
        await _carry(transport, SendRequest(tag=1, message=message, key="k", look=look), landed.append)
        await asyncio.sleep(0.3)
    assert landed[0].outcome == HeldBack(reason="its window closes")
    assert bodies == []


def test_a_message_that_was_let_go_may_have_left() -> None:
    look = look_with(Desk(leave))
    asyncio.run(look())
    assert not look.give_up()
