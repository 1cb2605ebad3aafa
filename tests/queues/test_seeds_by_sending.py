"""The pipelines of the seeds by sending: a moved clock, the engine's own decisions, and a mail server's log."""

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
import time_machine

from accounts.models import Account, User
from queues.actions import Took, put
from queues.entries import Entry
from queues.models import Item, Queue
from tests.factories import AccountFactory, LimitFactory, QueueFactory
from tests.queues.simulated import Inbox, Received, Simulation, mail_server, next_monday

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis")]

ZONE = ZoneInfo("Etc/GMT-8")  # no clock changes, whenever the test runs
BUSINESS = {"window_start_hour": 9, "window_end_hour": 18, "send_days": 0b0011111, "zone": "Etc/GMT-8"}
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


@pytest.fixture
def server() -> Iterator[tuple[Inbox, int]]:
    with mail_server() as found:
        yield found


def mails(count: int, accounts: list[Account], start: datetime, a_day: int) -> list[Entry]:
    """Return individually written mails, each with its sender and its time, planned as the seed's script does it.

    Each account fills its first day, and then has two on each day from Monday to Friday, 25 minutes apart.
    """
    return [
        Entry(
            own_id=f"mail-{n}",
            address=f"reader-{n}@example.com",
            subject=f"Subject {n}",
            text=f"Text {n}",
            planned_at=_planned(n // len(accounts), start, a_day),
            sender=str(accounts[n % len(accounts)].pk),
        )
        for n in range(count)
    ]


def _planned(place: int, start: datetime, a_day: int) -> datetime:
    day, number = (0, place) if place < a_day else (1 + (place - a_day) // 2, (place - a_day) % 2)
    return start + (day + day // 5 * 2) * DAY + number * 25 * MINUTE


@pytest.mark.parametrize(
    ("count", "a_day"),
    [(20, 2), pytest.param(200, 20, marks=pytest.mark.soak)],
    ids=["short", "as the seed says"],
)
def test_individual_mails_over_five_accounts_leave_inside_every_limit_and_in_order(
    owner: User, server: tuple[Inbox, int], count: int, a_day: int
) -> None:
    """Seed 001: some a day for each account, 9 to 18, Monday to Friday, 5 to 20 minutes apart, the account fixed."""
    inbox, port = server
    accounts = AccountFactory.create_batch(5, owner=owner, by_email=True, zone="Etc/GMT-8")
    for account in accounts:
        LimitFactory.create(account=account, action="email", per_day=a_day, gap_min=300, gap_max=1200)
    start = next_monday(ZONE, 9)
    with time_machine.travel(start - 5 * MINUTE, tick=False) as clock:
        queue = QueueFactory.create(owner=owner, accounts=accounts, by_email=True, **BUSINESS)
        entries = mails(count, accounts, start, a_day)
        assert {each.took for each in put(queue, entries, source="file", by=None)} == {Took.ADDED}
        simulation = Simulation(accounts=accounts, clock=clock, port=port)
        simulation.run(until=start + 3 * DAY)
        simulation.restart()
        simulation.run(until=start + 21 * DAY)
    assert sorted(mail.subject for mail in inbox.mails) == sorted(entry.subject for entry in entries)
    for n, account in enumerate(accounts):
        got = inbox.of(account)
        wanted = sorted(entries[n::5], key=lambda entry: entry.planned_at or start)
        assert [mail.subject for mail in got] == [entry.subject for entry in wanted]
        _keeps(got, a_day)


def _keeps(got: list[Received], a_day: int) -> None:
    times = [mail.at.astimezone(ZONE) for mail in got]
    assert max(Counter(at.date() for at in times).values()) <= a_day
    assert all(at.weekday() < 5 and 9 <= at.hour < 18 for at in times)
    assert all(later - earlier >= 5 * MINUTE for earlier, later in pairwise(times))


@pytest.mark.parametrize("pace", ["planned", "steady"])
@pytest.mark.parametrize(
    "overdue", [20, pytest.param(500, marks=pytest.mark.soak)], ids=["short", "as the seed says"]
)
def test_overdue_items_leave_without_a_burst_also_after_a_restart(
    owner: User, server: tuple[Inbox, int], pace: str, overdue: int
) -> None:
    """Seed 004, plan A and plan B: 3 to 5 minutes apart, 10 an hour, 50 a day, for each sender."""
    inbox, port = server
    accounts = AccountFactory.create_batch(2, owner=owner, by_email=True, zone="Etc/GMT-8")
    for account in accounts:
        LimitFactory.create(
            account=account, action="email", gap_min=180, gap_max=300, per_hour=10, per_day=50
        )
    start = next_monday(ZONE, 8)
    with time_machine.travel(start, tick=False) as clock:
        queue = QueueFactory.create(
            owner=owner,
            accounts=accounts,
            by_email=True,
            pace=pace,
            **BUSINESS | {"window_start_hour": 0, "window_end_hour": 24, "send_days": 127},
        )
        _give(queue, accounts, overdue, start)
        simulation = Simulation(accounts=accounts, clock=clock, port=port)
        simulation.run(until=start + 25 * MINUTE)
        before = len(inbox.mails)
        simulation.restart()
        clock.move_to(datetime.now(UTC) + 2 * HOUR, tick=False)  # the outage
        simulation.run(until=start + 30 * DAY)
    assert 4 < before < overdue
    assert len(inbox.mails) == len({mail.subject for mail in inbox.mails}) == Item.objects.count()
    for account in accounts:
        _has_no_burst([mail.at for mail in inbox.of(account)])
    if pace == "planned":
        _are_on_time(inbox)


def _give(queue: Queue, accounts: list[Account], overdue: int, start: datetime) -> None:
    long_ago = start - 3 * DAY
    entries = [
        Entry(
            own_id=f"row-{n}",
            address=f"reader-{n}@example.com",
            subject=f"Late {n}",
            text="Hello",
            planned_at=long_ago + n * MINUTE,
            sender=str(accounts[n % 2].pk),
        )
        for n in range(overdue)
    ]
    if queue.pace == Queue.Pace.PLANNED:
        entries.append(
            Entry(
                own_id="on-time",
                address="punctual@example.com",
                subject=f"At {(start + 15 * MINUTE).isoformat()}",
                text="Hello",
                planned_at=start + 15 * MINUTE,
                sender=str(accounts[0].pk),
            )
        )
    put(queue, entries, source="file", by=None)


def _has_no_burst(times: list[datetime]) -> None:
    assert all(later - earlier >= 3 * MINUTE for earlier, later in pairwise(times))
    for n, at in enumerate(times):
        assert sum(at <= other < at + HOUR for other in times[n:]) <= 10
    assert max(Counter(at.astimezone(ZONE).date() for at in times).values()) <= 50


def _are_on_time(inbox: Inbox) -> None:
    (mail,) = [mail for mail in inbox.mails if mail.subject.startswith("At ")]
    planned = datetime.fromisoformat(mail.subject.removeprefix("At "))
    assert planned <= mail.at <= planned + 5 * MINUTE
