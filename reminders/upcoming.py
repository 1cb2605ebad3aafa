"""The runs that scheduled reminders will make for accounts (SPEC S5).

Limited in every direction: a forecast has to be quick, and runs far down the list hardly change its end.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import takewhile
from math import ceil

from accounts.models import Account
from delivery import audience
from delivery.limits.lookup import limits_for
from delivery.planning import strangers
from delivery.planning.new_people import limit_people
from delivery.planning.upcoming import Upcoming
from delivery.window import BadWindowError
from reminders.models import Part, Reminder
from reminders.moments import BadCronError, upcoming
from reminders.readiness import timetable_of, window_of

MOST_REMINDERS = 20
MOST_MOMENTS = 20  # moments of one reminder
MOST_RUNS = 100
MOST_TARGETS = 10_000  # targets counted for one reminder


def scheduled(accounts: Iterable[Account], *, until: datetime, but: int, now: datetime) -> list[Upcoming]:
    """Return the runs that these accounts will get until then from saved reminders other than `but`."""
    theirs = Reminder.objects.filter(reminder_accounts__account__in=accounts).values("pk")
    due = Reminder.objects.due(until).filter(pk__in=theirs).exclude(pk=but)
    reminders = due.prefetch_related("reminder_accounts", "parts").order_by("next_fire_at", "pk")
    soonest = list(reminders[:MOST_REMINDERS])
    sizes = audience.sizes([reminder.pk for reminder in soonest], most=MOST_TARGETS) if soonest else {}
    new = _strangers(soonest, accounts, now=now)
    runs = [run for reminder in soonest for run in _runs(reminder, sizes[reminder.pk], until, new)]
    return sorted(runs, key=lambda run: run.fires_at)[:MOST_RUNS]


def _strangers(
    reminders: Sequence[Reminder], accounts: Iterable[Account], *, now: datetime
) -> dict[tuple[int, int], int]:
    """Return how many recipients are new, by account and reminder; of accounts that have a limit of new people."""
    pairs = [
        (account, reminder.action)
        for account in accounts
        for reminder in reminders
        if any(sender.account_id == account.pk for sender in reminder.reminder_accounts.all())
    ]
    limits = limits_for(pairs) if pairs else {}
    shy = {account.pk: account for account, action in pairs if limit_people(limits[account.pk, action])}
    ids = [reminder.pk for reminder in reminders]
    return {
        (account.pk, reminder_id): count
        for account in shy.values()
        for reminder_id, count in strangers.of_reminders(ids, account, most=MOST_TARGETS, now=now).items()
    }


def _runs(
    reminder: Reminder, size: int, until: datetime, new: Mapping[tuple[int, int], int]
) -> Iterator[Upcoming]:
    """Yield one run for each of its moments, divided evenly between its accounts."""
    account_ids = [sender.account_id for sender in reminder.reminder_accounts.all()]
    parts = sum(part.role == Part.Role.FIRST for part in reminder.parts.all())
    for moment in _moments(reminder, until):
        yield Upcoming(
            account_ids=account_ids,
            targets=ceil(size / len(account_ids)),
            parts=max(1, parts),
            action=reminder.action,
            window=window_of(reminder),
            fires_at=moment,
            priority=reminder.priority,
            drip=(reminder.drip_gap_min, reminder.drip_gap_max) if reminder.drip else None,
            strangers={pk: ceil(new.get((pk, reminder.pk), 0) / len(account_ids)) for pk in account_ids},
        )


def _moments(reminder: Reminder, until: datetime) -> list[datetime]:
    timetable, first = timetable_of(reminder), reminder.next_fire_at
    if timetable is None or first is None:
        return []
    try:
        coming = upcoming(timetable, after=first - timedelta(microseconds=1), count=MOST_MOMENTS)
        return list(takewhile(lambda moment: moment <= until, coming))
    except (BadCronError, BadWindowError):
        return []  # the reminder will be switched off when it is due
