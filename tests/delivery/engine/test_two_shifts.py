"""Two pumps of one account in one process, after Redis lost the lease: each answer is its own asker's (SPEC P1, R7)."""

import asyncio
import threading
from collections import Counter
from datetime import UTC, datetime

import pytest
from django.db import connection
from pytest_django import Settings
from redis import Redis

from accounts.models import Account
from activity.models import Attempt
from config.redis.client import client
from delivery.engine import claims, pump, rescue, wakeups
from delivery.engine.batching import Batches, StatementQueue
from delivery.engine.lease import lease_key
from delivery.engine.permits import Permits
from delivery.engine.recording import Begun, Intent
from delivery.limiter import Granted
from delivery.models import Run, RunTarget
from delivery.states import TargetStatus
from tests.delivery.engine.test_claims import landing, run_of
from tests.delivery.stage import Stage, add_up, counted, serve
from tests.factories import AccountFactory

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis")]

STALE, OWNER = 1, 2


def intents(targets: list[int], *, fence: int) -> list[Intent]:
    now = datetime.now(UTC)
    return [Intent(target_id=each, part=0, fence=fence, wished_at=now) for each in targets]


def granted(leaves: list[Begun | None]) -> list[int]:
    return [begun.target_id for begun in leaves if begun is not None]


@pytest.fixture
def account() -> Account:
    return AccountFactory.create(fence=STALE)


@pytest.fixture
def taken_over(account: Account) -> tuple[Run, list[int]]:
    """A run whose targets a stale pump had claimed, and that the account's new pump has claimed since."""
    run = run_of(account, 3)
    stale = claims.claim(run.pk, account.pk, fence=STALE, most=3, now=datetime.now(UTC))
    lease = wakeups.take_lease(account.pk)
    assert lease is not None
    assert lease.fence == OWNER
    rescue.reclaim(lease, idempotent=False, files_inside=False)
    claimed = claims.claim(run.pk, account.pk, fence=OWNER, most=3, now=datetime.now(UTC))
    assert {each.target_id for each in stale} == {each.target_id for each in claimed}
    return run, [each.target_id for each in claimed]


def together(*batches: list[Intent]) -> list[list[Begun | None]]:
    """Return the answer to each pump when all of them ask within one statement."""

    async def scene() -> list[list[Begun | None]]:
        shared = Batches()
        try:
            return list(await asyncio.gather(*(shared.begin(batch) for batch in batches)))
        finally:
            await shared.close()

    return asyncio.run(scene())


@pytest.mark.parametrize("stale_first", [True, False])
def test_a_stale_pump_is_not_given_the_leave_of_the_one_that_took_over(
    taken_over: tuple[Run, list[int]], stale_first: bool
) -> None:
    _, targets = taken_over
    stale, owner = intents(targets, fence=STALE), intents(targets, fence=OWNER)
    answers = together(stale, owner) if stale_first else together(owner, stale)[::-1]
    assert granted(answers[0]) == []
    assert granted(answers[1]) == targets
    assert RunTarget.objects.filter(attempts=1).count() == 3


def test_of_two_wishes_for_one_message_in_one_statement_one_is_granted(
    taken_over: tuple[Run, list[int]],
) -> None:
    _, targets = taken_over
    wishes = intents(targets, fence=OWNER)
    both = together(wishes, wishes)
    assert sorted(granted(both[0]) + granted(both[1])) == sorted(targets)
    assert RunTarget.objects.filter(attempts=1).count() == 3


def test_a_wish_for_another_part_is_not_granted(taken_over: tuple[Run, list[int]]) -> None:
    _, targets = taken_over
    now = datetime.now(UTC)
    later = [Intent(target_id=each, part=1, fence=OWNER, wished_at=now) for each in targets]
    [of_later, of_first] = together(later, intents(targets, fence=OWNER))
    assert granted(of_later) == []
    assert granted(of_first) == targets


def test_landings_of_both_pumps_in_one_statement_move_only_what_is_the_owner_s(
    taken_over: tuple[Run, list[int]], account: Account
) -> None:
    run, targets = taken_over
    together(intents(targets, fence=OWNER))
    late = landing(run, account, targets[0], TargetStatus.FAILED, fence=STALE, outcome="rejected")
    fresh = landing(run, account, targets[0], TargetStatus.SENT, fence=OWNER)

    async def scene() -> None:
        shared = Batches()
        try:
            for counts in await asyncio.gather(shared.record([late]), shared.record([fresh])):
                assert [each.run_id for each in counts] == [run.pk]
        finally:
            await shared.close()

    asyncio.run(scene())
    assert counted(run) == {"sent": 1, "sending": 2}
    assert Attempt.objects.filter(target_id=targets[0]).count() == 2
    add_up(run)


def test_every_asker_of_a_tray_gets_the_answers_to_its_own_wishes_alone() -> None:
    async def write(wishes: list[int]) -> list[int]:
        await asyncio.sleep(0.01)
        return [-wish for wish in wishes]

    async def scene() -> None:
        queue: StatementQueue[int, int] = StatementQueue(write)  # type: ignore[arg-type]
        asked = [[1, 2], [3], [], [4, 5, 6]]
        answers = await asyncio.gather(*(queue.submit(each) for each in asked))
        assert [list(each) for each in answers] == [[-1, -2], [-3], [], [-4, -5, -6]]

    asyncio.run(scene())


def test_an_asker_that_gave_up_disturbs_no_other_and_is_not_written_later() -> None:
    written: list[int] = []

    async def scene() -> None:
        writing, go_on = asyncio.Event(), asyncio.Event()

        async def write(wishes: list[int]) -> list[int]:
            writing.set()
            await go_on.wait()
            written.extend(wishes)
            return wishes

        queue: StatementQueue[int, int] = StatementQueue(write)  # type: ignore[arg-type]
        under_way = asyncio.create_task(queue.submit([1]))
        await writing.wait()
        gives_up, stays = (asyncio.create_task(queue.submit([each])) for each in (2, 3))
        await asyncio.sleep(0)  # both ask
        under_way.cancel()
        gives_up.cancel()
        await asyncio.sleep(0)
        go_on.set()
        assert list(await stays) == [3]

    asyncio.run(scene())
    assert written == [1, 3]


def test_what_a_stale_pump_says_of_its_permits_changes_nothing_for_the_new_one(
    stage: Stage, redis: Redis
) -> None:
    account = stage.account(per_minute=5)
    first, second = _permits(account), None
    units = first.take(cost=1, error_rate=0.0, in_hand={}, in_flight=0)
    assert isinstance(units, Granted)
    redis.flushdb()
    second = _permits(account)
    answer = second.take(cost=1, error_rate=0.0, in_hand={}, in_flight=0)
    assert isinstance(answer, Granted)
    used = redis.zcard(f"{_prefix(account)}:log")
    first.settle(units.units[0].permits[0])
    first.give_back([permit for unit in units.units[1:] for permit in unit.permits])
    first.report()
    assert redis.zcard(f"{_prefix(account)}:log") == used


def _permits(account: Account) -> Permits:
    lease = wakeups.take_lease(account.pk)
    assert lease is not None
    return Permits(account, lease, "message")


def _prefix(account: Account) -> str:
    return f"{lease_key(account.pk).removesuffix('lease')}message"


def test_two_pumps_of_one_account_in_one_process_send_nothing_twice(stage: Stage, quick: Settings) -> None:
    """The lease is lost again and again while new pumps are woken, and the old ones do not know it yet."""
    quick.PUMP_SECONDS = 1.5
    account = stage.account(idempotent=False, group_concurrency=8)
    stage.behave(account, latency_ms=20, jitter_ms=20)
    run = stage.fire(account, to=400)
    ends = threading.Event()

    def work() -> None:
        while not ends.is_set() and RunTarget.objects.filter(status=TargetStatus.PENDING).exists():
            pump.pump(account.pk)
        connection.close()

    pumps = [threading.Thread(target=work) for _ in range(4)]
    for each in pumps:
        each.start()
    for _ in range(40):
        client().delete(lease_key(account.pk))
        ends.wait(0.05)
    for each in pumps:
        each.join(30)
    ends.set()
    serve(run, account)
    arrived = Counter(line["key"] for line in stage.delivered(account))
    assert max(arrived.values()) == 1
    add_up(run)
