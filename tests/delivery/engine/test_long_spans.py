"""Caps over 24 hours, 7 and 30 days through the pump, and what a limit does not count."""

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone
from redis import Redis

from delivery.engine import pump
from delivery.states import RunStatus, TargetStatus, WaitReason
from tests.delivery.stage import Stage, counted, pumping, sentence_of, serve
from tests.factories import AttemptFactory

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(
    ("cap", "days", "status"),
    [
        ("per_24_hours", 1, RunStatus.RUNNING),
        ("per_7_days", 7, RunStatus.RUNNING),
        ("per_30_days", 30, RunStatus.PAUSED),  # no window stays open for so long
    ],
)
def test_a_long_span_that_is_full_ends_the_day_and_says_so(
    stage: Stage, redis: Redis, cap: str, days: int, status: RunStatus
) -> None:
    account = stage.account(limits={cap: 4})
    run = stage.fire(account, to=6)
    for _ in range(3):  # the ledger has it after a loss of Redis
        pump.pump(account.pk)
        redis.flushdb()
    assert len(stage.received(account)) == 4
    account.refresh_from_db()
    assert account.waiting_for in {cap, WaitReason.NOT_BEFORE, WaitReason.NOTHING_TO_SEND}
    later = datetime.now(UTC) + timedelta(days=days - 1)
    assert all(at > later for at in run.targets.filter(status="pending").values_list("not_before", flat=True))
    run.refresh_from_db()
    assert run.status == status
    assert "limit" in run.summary


def test_the_sentence_names_the_span(stage: Stage) -> None:
    account = stage.account(limits={"per_7_days": 3})
    stage.fire(account, to=5)
    pump.pump(account.pk)
    assert sentence_of(account) == "Limit reached: 3 messages per 7 days."


def test_a_message_that_leaves_the_span_makes_room(stage: Stage) -> None:
    account = stage.account(limits={"per_7_days": 3})
    # One part of the span is 105 minutes: a message counts up to so much longer.
    for ago in (timedelta(days=7, hours=2), timedelta(days=6), timedelta(days=6)):
        AttemptFactory.create(test_send=True, account=account, at=timezone.now() - ago)
    run = stage.fire(account, to=3)
    pump.pump(account.pk)
    assert len(stage.received(account)) == 1
    assert counted(run) == {"sent": 1, "pending": 2}


def test_what_never_left_eats_no_cap(stage: Stage) -> None:
    account = stage.account(limits={"per_day": 3, "per_7_days": 3}, group_concurrency=1)
    stage.behave(account, not_connected=True)
    run = stage.fire(account, to=3)
    with pumping(stage, account, after=3):
        stage.behave(account, not_connected=False)
    serve(run, account)
    assert run.targets.filter(status=TargetStatus.SENT).count() == 3
    assert account.attempts.filter(outcome="not_connected").count() == 1
