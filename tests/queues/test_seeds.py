"""The pipelines of the seeds: individually written mails at planned times, and overdue items after a restart."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
import time_machine
from pytest_django import Settings

from accounts.models import User
from delivery.engine import pump
from delivery.models import RunTarget
from queues.actions import Took, put
from queues.entries import Entry
from queues.keep_times import keep_times
from tests.delivery.stage import Stage
from tests.factories import AccountFactory, QueueFactory

BERLIN = ZoneInfo("Europe/Berlin")
MONDAY = datetime(2026, 3, 9, 8, tzinfo=BERLIN)
BUSINESS = {"window_start_hour": 9, "window_end_hour": 18, "send_days": 0b0011111}
MINUTE = timedelta(minutes=1)


@pytest.mark.django_db
@pytest.mark.usefixtures("redis")
def test_200_mails_over_5_accounts_are_planned_inside_every_limit_and_in_their_order(owner: User) -> None:
    """Seed 001: 20 a day each, 9 to 18, Monday to Friday, apart, the account fixed when they are made."""
    accounts = AccountFactory.create_batch(
        5, owner=owner, by_email=True, as_before=False, zone="Europe/Berlin"
    )
    with time_machine.travel(MONDAY - 5 * MINUTE, tick=False):
        queue = QueueFactory.create(
            owner=owner, accounts=accounts, by_email=True, zone="Europe/Berlin", **BUSINESS
        )
        entries = [
            Entry(
                own_id=f"mail-{n}",
                address=f"reader-{n}@example.com",
                subject=f"Subject {n}",
                text=f"Text {n}",
                planned_at=MONDAY + n * MINUTE,
                sender=str(accounts[n % 5].pk),
            )
            for n in range(200)
        ]
        assert {result.took for result in put(queue, entries, source="file", by=None)} == {Took.ADDED}
        assert keep_times() > 100
        assert keep_times() == 0
    for account in accounts:
        targets = list(RunTarget.objects.filter(account=account).order_by("not_before", "pk"))
        assert [target.pk for target in targets] == sorted(target.pk for target in targets)
        times = [target.not_before.astimezone(BERLIN) for target in targets]
        assert len(times) == 40
        assert max(Counter(at.date() for at in times).values()) <= 20
        assert all(at.weekday() < 5 and 9 <= at.hour < 18 for at in times)
        assert all(later - earlier >= 6 * MINUTE for earlier, later in pairwise(times))


@pytest.mark.parametrize("pace", ["planned", "steady"])
def test_500_overdue_items_leave_in_no_bunch_also_after_a_restart(
    stage: Stage, quick: Settings, pace: str
) -> None:
    """Seed 004, plan A and plan B: a minute lasts 0.06 s, so 3 to 5 minutes are 0.18 to 0.3 s."""
    quick.MINUTE_SECONDS, quick.PUMP_SECONDS = 0.06, 2
    limits = {} if pace == "planned" else {"gap_min": 180, "gap_max": 300}
    account = stage.account(limits=limits)
    queue = QueueFactory.create(owner=stage.owner, accounts=[account], pace=pace)
    long_ago = datetime.now(UTC) - timedelta(days=1)
    entries = [
        Entry(own_id=f"row-{n}", address=f"+60127000{n:03}", text=f"Text {n}", planned_at=long_ago)
        for n in range(500)
    ]
    put(queue, entries, source="file", by=None)
    for _ in range(3):  # each time another pump, as after a restart
        pump.pump(account.pk)
    received = [line["at"] for line in stage.received(account)]
    assert len(received) > 3
    # The gap is counted from when the last message left: its receipt may be some milliseconds later.
    assert min(later - earlier for earlier, later in pairwise(received)) >= 150
    assert [line["text"] for line in stage.received(account)] == [f"Text {n}" for n in range(len(received))]
