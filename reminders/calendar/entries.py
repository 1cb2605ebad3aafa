"""The entries of a calendar: runs as they were and are, and the firings to come with their forecast.

Limited in every direction, since a page has to be quick: beyond `FORECASTS` reminders an entry has no length of its
own, and of a reminder that fires very often only the first moments are shown.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.db.models import QuerySet
from django.urls import reverse

from accounts.models import Account
from delivery.models import Run
from delivery.planning.words import Forecast
from delivery.states import SETTLED_RUN
from delivery.window import BadWindowError
from reminders.forecast import forecast, forecast_run
from reminders.models import Reminder
from reminders.moments import BadCronError, upcoming
from reminders.readiness import timetable_of

FORECASTS = 15
MOST_REMINDERS = 100
MOST_MOMENTS = 60  # of one reminder
MOST_RUNS = 200
SHORTEST = timedelta(minutes=1)
UNKNOWN = timedelta(minutes=15)  # the length that is drawn where none is known


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A run, or a firing to come."""

    title: str
    url: str
    starts_at: datetime
    ends_at: datetime
    accounts: Mapping[int, str]  # names by id
    uid: str
    status: str = ""  # of a run
    targets: int | None = None
    fits: bool = True
    clashes: Sequence[str] = ()  # what else its accounts send at that time

    @property
    def to_come(self) -> bool:
        return not self.status

    def overlaps(self, other: "Entry") -> bool:
        return self.starts_at < other.ends_at and other.starts_at < self.ends_at


def entries(
    reminders: QuerySet[Reminder], runs: QuerySet[Run], *, since: datetime, until: datetime, now: datetime
) -> list[Entry]:
    """Return everything between the two moments, in the order of time, each with what it clashes with."""
    found = [
        *_runs(runs, since, until, now),
        *firings(reminders, since=max(since, now), until=until, now=now),
    ]
    return _with_clashes(sorted(found, key=lambda entry: (entry.starts_at, entry.title)))


def firings(
    reminders: QuerySet[Reminder], *, since: datetime, until: datetime, now: datetime
) -> Iterator[Entry]:
    """Yield the firings to come."""
    soonest = reminders.filter(
        status=Reminder.Status.SCHEDULED, archived_at=None, next_fire_at__lt=until
    ).order_by("next_fire_at", "pk")
    forecasts = 0
    for reminder in soonest.prefetch_related("accounts")[:MOST_REMINDERS]:
        moments = _moments(reminder, since, until)
        if not moments:
            continue
        forecasts += 1
        foreseen = forecast(reminder, now=now, fires_at=moments[0]) if forecasts <= FORECASTS else None
        yield from (_firing(reminder, moment, foreseen) for moment in moments)


def _firing(reminder: Reminder, moment: datetime, foreseen: Forecast | None) -> Entry:
    length = UNKNOWN
    if foreseen is not None:
        ends_at = foreseen.finishes_at or foreseen.closes_at
        length = max(SHORTEST, ends_at - foreseen.fires_at)
    return Entry(
        title=str(reminder),
        url=reverse("reminders:page", args=[reminder.pk]),
        starts_at=moment,
        ends_at=moment + length,
        accounts={account.pk: account.name for account in reminder.accounts.all()},
        uid=f"reminder-{reminder.pk}-{moment:%Y%m%dT%H%M%S}",
        targets=foreseen.targets if foreseen else None,
        fits=foreseen is None or foreseen.fits,
    )


def _moments(reminder: Reminder, since: datetime, until: datetime) -> list[datetime]:
    timetable, first = timetable_of(reminder), reminder.next_fire_at
    if timetable is None or first is None:
        return []
    after = max(first, since) - timedelta(microseconds=1)
    try:
        coming = upcoming(timetable, after=after, count=MOST_MOMENTS)
    except (BadCronError, BadWindowError):
        return []  # the reminder is switched off when it is due
    return [moment for moment in coming if moment < until]


def _runs(runs: QuerySet[Run], since: datetime, until: datetime, now: datetime) -> Iterator[Entry]:
    rows = runs.filter(kind=Run.Kind.REMINDER, archived_at=None, total__gt=0, fired_at__lt=until)
    newest = list(rows.defer("parts").order_by("-pk")[:MOST_RUNS])
    shown = [run for run in newest if (run.finished_at or now) >= since]
    accounts = _accounts_of(shown)
    for run in shown:
        yield Entry(
            title=run.name,
            url=reverse("runs:page", args=[run.pk]),
            starts_at=run.started_at or run.opens_at or run.fired_at,
            ends_at=_end(run, now),
            accounts=accounts.get(run.pk, {}),
            uid=f"run-{run.pk}",
            status=run.shown_status,
            targets=run.expected,
        )


def _end(run: Run, now: datetime) -> datetime:
    begins = run.started_at or run.opens_at or run.fired_at
    if run.status in SETTLED_RUN:
        return max(run.finished_at or begins, begins + SHORTEST)
    foreseen = forecast_run(run, now=now)
    ends = (foreseen.finishes_at or foreseen.closes_at) if foreseen else now
    return max(ends, begins + SHORTEST)


def _accounts_of(runs: Sequence[Run]) -> dict[int, dict[int, str]]:
    rows = Account.objects.filter(run_accounts__run__in=[run.pk for run in runs])
    found: dict[int, dict[int, str]] = {}
    for run_id, account_id, name in rows.values_list("run_accounts__run", "pk", "name") if runs else ():
        found.setdefault(run_id, {})[account_id] = name
    return found


def _with_clashes(found: list[Entry]) -> list[Entry]:
    """Return the entries, each open one with the others that its accounts send at the same time."""
    return [replace(entry, clashes=list(_clashes(entry, found))) for entry in found]


def _clashes(entry: Entry, found: Sequence[Entry]) -> Iterator[str]:
    if entry.status in SETTLED_RUN:
        return
    for other in found:
        shared = entry.accounts.keys() & other.accounts.keys()
        if other is not entry and shared and other.status not in SETTLED_RUN and entry.overlaps(other):
            names = ", ".join(sorted(entry.accounts[account] for account in shared))
            yield f"{names} also sends “{other.title}” at this time: one waits for the other."
