"""Batches: wishes that come together share a statement, and nobody waits for somebody else's lock."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Any

import psycopg
import pytest
from django.db import DatabaseError, OperationalError, connection, transaction

from accounts.models import Account
from activity.models import Attempt
from delivery.engine import batching, claims, recording
from delivery.engine.batching import Batches, StatementQueue
from delivery.engine.claims import Claimed
from delivery.engine.recording import Begun, Intent, Landing, Ledgered
from delivery.engine.sql import Line, Query
from delivery.models import Run, RunTarget
from delivery.states import TargetStatus
from reminders.fire import fire
from tests.delivery.stage import add_up, counted
from tests.factories import AccountFactory, ReminderFactory

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis")]


class Pump:
    """The part of a pump that `Batches` sees: a run, and targets that were claimed for an account."""

    def __init__(self, *, targets: int = 2) -> None:
        self.account: Account = AccountFactory.create(fence=1)
        reminder = ReminderFactory.create(
            owner=self.account.owner, accounts=[self.account], recipients=targets, around_the_clock=True
        )
        self.run: Run = fire(reminder)
        self.claimed: list[Claimed] = claims.claim(
            self.run.pk, self.account.pk, fence=1, most=targets, now=datetime.now(UTC)
        )

    def intents(self) -> list[Intent]:
        now = datetime.now(UTC)
        return [Intent(target_id=each.target_id, part=0, fence=1, wished_at=now) for each in self.claimed]

    def landings(self, error: str = "") -> list[Landing]:
        whose = Ledgered(
            run_id=self.run.pk, owner_id=self.run.owner_id, account_id=self.account.pk, action="message"
        )
        return [
            Landing(
                whose=whose,
                fence=1,
                target_id=each.target_id,
                part=0,
                attempt=1,
                began_at=datetime.now(UTC),
                took_ms=1,
                outcome="sent",
                provider_id="",
                error=error,
                status=TargetStatus.SENT,
                parts_done=1,
                not_before=None,
            )
            for each in self.claimed
        ]


def targets(leaves: list[Begun | None]) -> list[int]:
    return [begun.target_id for begun in leaves if begun is not None]


@asynccontextmanager
async def opened() -> AsyncIterator[Batches]:
    desk = Batches()
    try:
        yield desk
    finally:
        await desk.close()


@contextmanager
def held(*rows: Run | RunTarget) -> Iterator[threading.Event]:
    """Lock the rows in another thread, until the event is set."""
    locked, release = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic():
            for row in rows:
                type(row)._default_manager.select_for_update().get(pk=row.pk)
            locked.set()
            release.wait(10)
        connection.close()

    thread = threading.Thread(target=hold)
    thread.start()
    locked.wait(10)
    try:
        yield release
    finally:
        release.set()
        thread.join()


def test_wishes_that_come_together_share_a_statement(monkeypatch: pytest.MonkeyPatch) -> None:
    pumps = [Pump() for _ in range(6)]
    real, sizes = recording.begin, list[int]()

    def counting(intents: list[Intent], **told: Any) -> Query[list[Begun | None]]:
        sizes.append(len(intents))
        return real(intents, **told)

    monkeypatch.setattr(recording, "begin", counting)

    async def scene() -> None:
        async with opened() as desk:
            answers = await asyncio.gather(*(desk.begin(pump.intents()) for pump in pumps))
        for pump, begun in zip(pumps, answers, strict=True):
            assert [each.target_id for each in pump.claimed] == targets(begun)

    asyncio.run(scene())
    assert sum(sizes) == 12
    assert len(sizes) <= 2


class Asked:
    """Statements by the requests in each; each request is answered with itself."""

    def __init__(self) -> None:
        self.statements: list[list[str]] = []
        self.queue: StatementQueue[str, str] = StatementQueue(self.write)

    async def write(self, requests: Sequence[str]) -> Sequence[str]:
        self.statements.append(list(requests))
        await asyncio.sleep(0)
        return requests


def test_requests_that_can_wait_share_a_statement_and_each_gets_its_own_answer() -> None:
    async def scene() -> None:
        asked = Asked()
        first = asyncio.create_task(asked.queue.submit(["a", "b"], patience=0.05))
        await asyncio.sleep(0.01)
        second = asyncio.create_task(asked.queue.submit(["c"], patience=0.05))
        assert await first == ["a", "b"]
        assert await second == ["c"]
        assert asked.statements == [["a", "b", "c"]]

    asyncio.run(scene())


def test_a_request_that_cannot_wait_takes_the_others_along() -> None:
    async def scene() -> None:
        asked = Asked()
        patient = asyncio.create_task(asked.queue.submit(["a"], patience=600))
        await asyncio.sleep(0)
        assert await asked.queue.submit(["b"]) == ["b"]
        assert await patient == ["a"]
        assert asked.statements == [["a", "b"]]

    asyncio.run(scene())


def test_as_many_requests_as_a_statement_takes_wait_no_longer() -> None:
    async def scene() -> None:
        asked = Asked()
        many = [[str(number)] for number in range(batching.MOST)]
        assert await asyncio.gather(*(asked.queue.submit(one, patience=600) for one in many)) == many

    asyncio.run(scene())


def test_a_request_that_is_given_up_while_it_waits_is_never_written() -> None:
    async def scene() -> None:
        asked = Asked()
        given_up = asyncio.create_task(asked.queue.submit(["a"], patience=0.02))
        await asyncio.sleep(0)
        given_up.cancel()
        await asyncio.gather(given_up, return_exceptions=True)
        assert await asked.queue.submit(["b"], patience=0.04) == ["b"]
        assert asked.statements == [["b"]]

    asyncio.run(scene())


def test_patience_that_ends_while_a_statement_is_under_way_is_not_forgotten() -> None:
    async def scene() -> None:
        asked = Asked()
        first = asyncio.create_task(asked.queue.submit(["a"]))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        second = asyncio.create_task(asked.queue.submit(["b"], patience=0.01))
        assert await first == ["a"]
        assert await second == ["b"]

    asyncio.run(scene())


def test_a_run_that_somebody_holds_keeps_no_other_account_waiting() -> None:
    slow, quick = Pump(), Pump()

    async def scene(release: threading.Event) -> None:
        async with opened() as desk:
            waiting = asyncio.create_task(desk.record(slow.landings()))
            [counts] = await desk.record(quick.landings())
            assert (counts.run_id, counts.sent) == (quick.run.pk, 2)
            assert not waiting.done()
            release.set()
            [counts] = await waiting
            assert (counts.run_id, counts.sent) == (slow.run.pk, 2)

    with held(slow.run) as release:
        asyncio.run(scene(release))
    for pump in (slow, quick):
        assert counted(pump.run) == {"sent": 2}
        add_up(pump.run)


def test_a_run_that_somebody_holds_takes_no_threads_from_the_others() -> None:
    slow = Pump()
    again = partial(
        claims.claim, slow.run.pk, slow.account.pk, fence=1, most=1, now=datetime.now(UTC)
    )  # many accounts share the run

    async def scene(release: threading.Event) -> None:
        async with opened() as desk:
            waiting = [
                asyncio.create_task(desk.ask_about(slow.run.pk, again)) for _ in range(batching.THREADS + 1)
            ]
            await asyncio.sleep(0)
            assert await desk.ask(lambda: "there") == "there"
            assert not any(task.done() for task in waiting)
            release.set()
            assert await asyncio.gather(*waiting) == [[]] * len(waiting)

    with held(slow.run) as release:
        asyncio.run(scene(release))


def test_a_target_that_somebody_holds_is_not_begun_and_keeps_nobody_waiting() -> None:
    pump = Pump()
    taken = RunTarget.objects.get(pk=pump.claimed[0].target_id)

    async def scene() -> list[int]:
        async with opened() as desk:
            return targets(await desk.begin(pump.intents()))

    with held(taken):
        assert asyncio.run(scene()) == [pump.claimed[1].target_id]


def test_what_the_database_refuses_fails_alone() -> None:
    bad, good = Pump(), Pump()

    async def scene() -> None:
        async with opened() as desk:
            results = await asyncio.gather(
                desk.record(bad.landings(error="x" * 501)),
                desk.record(good.landings()),
                return_exceptions=True,
            )
        assert isinstance(results[0], DatabaseError)
        assert not isinstance(results[1], BaseException)

    asyncio.run(scene())
    assert counted(good.run) == {"sent": 2}
    assert counted(bad.run) == {"sending": 2}
    assert set(Attempt.objects.values_list("run_id", flat=True)) == {good.run.pk}


def test_an_answer_that_was_lost_with_its_connection_is_recorded_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pump = Pump()
    real = Line.run

    async def lost(self: Line, query: Query[Any]) -> None:
        await real(self, query)
        raise psycopg.OperationalError("the connection is gone")

    monkeypatch.setattr(Line, "run", lost)

    async def scene() -> None:
        async with opened() as desk:
            [counts] = await desk.record(pump.landings())
        assert counts.sent == 2

    asyncio.run(scene())
    assert Attempt.objects.count() == 2
    add_up(pump.run)


def test_a_database_that_is_away_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batching, "PAUSE", 0.01)
    tries = []

    def work() -> str:
        tries.append(1)
        if len(tries) < 3:
            raise OperationalError("starting up")
        return "there"

    async def scene() -> str:
        return await Batches().ask(work)

    assert asyncio.run(scene()) == "there"


def test_a_database_that_stays_away_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batching, "PAUSE", 0.01)
    monkeypatch.setattr(batching, "PATIENCE", 0.05)

    def work() -> None:
        raise OperationalError("gone")

    async def scene() -> None:
        await Batches().ask(work)

    with pytest.raises(OperationalError):
        asyncio.run(scene())
