"""A month of five accounts against its forecasts: caps, new people, a quota, a lock and late bounces together.

The accounts send with the engine's own pieces in simulated time (`month.py`). What happened is compared with what was
foreseen before the run was made, and on its tenth day.
"""

import sys
from collections import Counter
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
import time_machine

from accounts.models import Account, Limit, User
from delivery.models import Run
from delivery.sessions import first_contacts, own_limits
from delivery.transports import base
from reminders.fire import fire
from reminders.forecast import forecast, forecast_run
from tests.delivery.planning.month import Message, World
from tests.delivery.stage import add_up
from tests.factories import AccountFactory, LimitFactory, RecipientFactory, ReminderFactory

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis")]

ZONE = "Europe/Berlin"
START = datetime(2026, 10, 5, 8, tzinfo=ZoneInfo(ZONE))  # the clocks go back on the 25th
HOURS, DAYS = timedelta(hours=1), timedelta(days=1)
CYCLE_ENDS = START + 8 * DAYS  # of the quota of new chats


def accounts_of(owner: User, scale: int) -> list[Account]:
    """Return five accounts, each with limits of its own kind."""
    each: list[dict[str, int]] = [
        {"new_per_day": scale, "per_day": 3 * scale},
        {"new_per_day": scale, "per_24_hours": 3 * scale},
        {"new_per_week": 7 * scale, "per_7_days": 20 * scale},
        {"new_per_day": scale, "per_day": 3 * scale, "batch_size": 20, "batch_pause": 300},
        {"new_per_day": scale, "per_day": 3 * scale, "per_hour": scale + 1},
    ]
    accounts = []
    for number, limits in enumerate(each):
        work = {"work_start_hour": 9, "work_end_hour": 17} if number == 1 else {}
        account = AccountFactory.create(owner=owner, name=f"Number {number}", zone=ZONE, **work)
        LimitFactory.create(account=account, gap_min=30, gap_max=90, **limits)
        accounts.append(account)
    told(accounts[3], scale, used=15 * scale, until=CYCLE_ENDS, at=START - HOURS)
    return accounts


def told(account: Account, scale: int, *, used: int, until: datetime, at: datetime) -> None:
    """Let the service say its quota of new chats."""
    said = base.OwnLimits(new_chats=20 * scale, new_chats_used=used, new_chats_until=until)
    own_limits.keep(account, said, asked_at=at)


class Month:
    """A run to `size` recipients, a third of them new people, and its forecasts: before it, and on day `again`."""

    def __init__(self, owner: User, *, scale: int, size: int, locked: int, again: int) -> None:
        self.accounts = accounts_of(owner, scale)
        self.scale, self.lock_at = scale, START + (locked - 1) * DAYS - HOURS
        to = RecipientFactory.create_batch(size - size // 3, owner=owner, group=True)
        to += RecipientFactory.create_batch(size // 3, owner=owner)
        values = {"zone": ZONE, "window_start_hour": 8, "window_end_hour": 20, "on_close": "resume"}
        reminder = ReminderFactory.create(owner=owner, accounts=self.accounts, recipients=to, **values)
        with time_machine.travel(START, tick=False):
            self.foreseen = [forecast(reminder, now=START)]
            self.run = fire(reminder)
        self.world = World(self.accounts, start=START)
        self.world.run(
            until=START + 90 * DAYS,
            done=lambda: not Run.objects.filter(finished_at=None).exists(),
            events=[
                (self.lock_at, self._lock),
                (CYCLE_ENDS, self._next_cycle),
                (START + (again - 1) * DAYS, self._look_again),
            ],
        )
        self.run.refresh_from_db()

    def _lock(self) -> None:
        first_contacts.lock(self.accounts[4], at=self.lock_at, until=self.lock_at + 24 * HOURS)

    def _next_cycle(self) -> None:
        told(self.accounts[3], self.scale, used=0, until=CYCLE_ENDS + 30 * DAYS, at=CYCLE_ENDS)

    def _look_again(self) -> None:
        found = forecast_run(Run.objects.get(pk=self.run.pk), now=self.world.now)
        assert found is not None
        self.foreseen.append(found)

    @property
    def sent(self) -> list[Message]:
        return self.world.sent

    def took(self) -> timedelta:
        return max(message.at for message in self.sent) - START


def by_account(month: Month) -> Iterator[tuple[Limit, list[Message]]]:
    for account in month.accounts:
        yield account.limits.get(), [each for each in month.sent if each.account_id == account.pk]


def days(messages: list[Message]) -> Counter[date]:
    return Counter(message.at.astimezone(ZoneInfo(ZONE)).date() for message in messages)


def most_within(messages: list[Message], span: timedelta) -> int:
    times = sorted(message.at for message in messages)
    return max((sum(at - span < other <= at for other in times) for at in times), default=0)


def holds(month: Month) -> None:
    """No cap of any span is crossed, nobody gets it twice, and the counts add up."""
    for limits, messages in by_account(month):
        new = [message for message in messages if message.new_person]
        assert max(days(messages).values()) <= (limits.per_day or 10**6)
        assert max(days(new).values()) <= (limits.new_per_day or 10**6)
        assert most_within(messages, timedelta(hours=24)) <= (limits.per_24_hours or 10**6)
        assert most_within(messages, timedelta(days=7)) <= (limits.per_7_days or 10**6)
        assert most_within(new, timedelta(days=7)) <= (limits.new_per_week or 10**6)
    quota, locked = (
        [each for each in month.sent if each.account_id == month.accounts[number].pk and each.new_person]
        for number in (3, 4)
    )
    assert sum(each.at < CYCLE_ENDS for each in quota) <= 5 * month.scale
    assert not [each for each in locked if month.lock_at <= each.at < month.lock_at + 24 * HOURS]
    assert len({message.target_id for message in month.sent}) == len(month.sent) == month.run.total
    assert month.run.returned > 0
    add_up(month.run)


def misses(month: Month) -> list[float]:
    """Return by what share of the whole time each forecast missed the end."""
    ends = [found.finishes_at for found in month.foreseen]
    return [(end - START) / month.took() - 1 for end in ends if end is not None]


def comes_true(month: Month) -> None:
    holds(month)
    missed = misses(month)
    assert len(missed) == 2
    assert max(map(abs, missed)) <= 0.05, (missed, month.took(), [each.sentence for each in month.foreseen])


def test_some_days_come_true(owner: User) -> None:
    comes_true(Month(owner, scale=1, size=150, locked=4, again=5))


@pytest.mark.soak
def test_a_month_comes_true(owner: User) -> None:
    month = Month(owner, scale=8, size=3000, locked=9, again=10)
    sys.stdout.write(f"\ntook {month.took()}, {month.run.returned} returned, missed {misses(month)}\n")
    for found in month.foreseen:
        sys.stdout.write(f"{found.finishes_at}: {found.sentence}\n")
    for account, (_, messages) in zip(month.accounts, by_account(month), strict=True):
        last, new = max(days(messages)), [each for each in messages if each.new_person]
        most = max(days(messages).values()), max(days(new).values())
        sys.stdout.write(f"{account}: {len(messages)} sent, {len(new)} new, most {most} a day, last {last}\n")
    comes_true(month)
