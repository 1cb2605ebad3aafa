"""The entries of a calendar: runs as they were and are, and the firings to come with their forecast.

Limited in every direction, since a page has to be quick: beyond `FORECASTS` reminders, and as many open runs, an entry
has no length of its own, and of a reminder that fires very often only the first moments are shown.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from django.db.models import QuerySet
from django.urls import reverse

from accounts.models import Account
from delivery.models import Run
from delivery.states import SETTLED_RUN
from delivery.window import BadWindowError
from reminders.calendar.lengths import SHORTEST, Length, Lengths
from reminders.forecast import forecast, forecast_run
from reminders.models import Reminder
from reminders.moments import BadCronError, upcoming
from reminders.readiness import timetable_of

FORECASTS = 15
MOST_REMINDERS = 100
MOST_MOMENTS = 60  # of one reminder
MOST_RUNS = 200


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
    known: bool = True  # how long it takes; else it is worked out after the page is shown
    clashes: Sequence[str] = ()  # what else its accounts send at that time

    @property
    def to_come(self) -> bool:
        return not self.status

    def overlaps(self, other: "Entry") -> bool:
        return self.starts_at < other.ends_at and other.starts_at < self.ends_at


def entries(
    reminders: QuerySet[Reminder],
    runs: QuerySet[Run],
    *,
    since: datetime,
    until: datetime,
    now: datetime,
    lengths: Lengths | None = None,
) -> list[Entry]:
    """Return everything between the two moments, in the order of time, each with what it clashes with."""
    lengths = lengths or Lengths()
    found = [
        *_runs(runs, since, until, now, lengths),
        *_firings(reminders, max(since, now), until, now, lengths),
    ]
    return _with_clashes(sorted(found, key=lambda entry: (entry.starts_at, entry.title)))


def _firings(
    reminders: QuerySet[Reminder], since: datetime, until: datetime, now: datetime, lengths: Lengths
) -> Iterator[Entry]:
    """Yield the firings to come."""
    soonest = reminders.filter(
        status=Reminder.Status.SCHEDULED, archived_at=None, next_fire_at__lt=until
    ).order_by("next_fire_at", "pk")
    ahead = [
        (each, _moments(each, since, until)) for each in soonest.prefetch_related("accounts")[:MOST_REMINDERS]
    ]
    coming = [(reminder, moments) for reminder, moments in ahead if moments]
    lengths.look_up(_name(reminder, moments[0]) for reminder, moments in coming[:FORECASTS])
    for place, (reminder, moments) in enumerate(coming):
        length = _foreseen(reminder, moments[0], now, lengths) if place < FORECASTS else Length()
        yield from (_firing(reminder, moment, length) for moment in moments)


def _name(reminder: Reminder, moment: datetime) -> str:
    return f"reminder:{reminder.pk}:{moment.timestamp():.0f}"


def _foreseen(reminder: Reminder, moment: datetime, now: datetime, lengths: Lengths) -> Length:
    def made() -> Length:
        told = forecast(reminder, now=now, fires_at=moment)
        lasts = max(SHORTEST, (told.finishes_at or told.closes_at) - told.fires_at)
        return Length(seconds=lasts.total_seconds(), targets=told.targets, fits=told.fits)

    return lengths.of(_name(reminder, moment), made)


def _firing(reminder: Reminder, moment: datetime, length: Length) -> Entry:
    return Entry(
        title=str(reminder),
        url=reverse("reminders:page", args=[reminder.pk]),
        starts_at=moment,
        ends_at=moment + length.lasts,
        accounts={account.pk: account.name for account in reminder.accounts.all()},
        uid=f"reminder-{reminder.pk}-{moment:%Y%m%dT%H%M%S}",
        targets=length.targets,
        fits=length.fits,
        known=length.known,
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


def _runs(
    runs: QuerySet[Run], since: datetime, until: datetime, now: datetime, lengths: Lengths
) -> Iterator[Entry]:
    rows = runs.filter(kind=Run.Kind.REMINDER, archived_at=None, total__gt=0, fired_at__lt=until)
    newest = list(rows.defer("parts").order_by("-pk")[:MOST_RUNS])
    shown = [run for run in newest if (run.finished_at or now) >= since]
    accounts = _accounts_of(shown)
    left = _left(shown, now, lengths)
    for run in shown:
        begins, length = run.started_at or run.opens_at or run.fired_at, left.get(run.pk, Length(seconds=0))
        ends_at = now + length.lasts if run.pk in left else run.finished_at or begins
        yield Entry(
            title=run.name,
            url=reverse("runs:page", args=[run.pk]),
            starts_at=begins,
            ends_at=max(ends_at, begins + SHORTEST),
            accounts=accounts.get(run.pk, {}),
            uid=f"run-{run.pk}",
            status=run.shown_status,
            targets=run.expected,
            known=length.known,
        )


def _left(runs: Sequence[Run], now: datetime, lengths: Lengths) -> dict[int, Length]:
    """Return how long each open run will still take, of the newest as it was forecast."""
    open_runs = [run for run in runs if run.status not in SETTLED_RUN]
    newest = open_runs[:FORECASTS]
    lengths.look_up(f"run:{run.pk}" for run in newest)
    found = {run.pk: lengths.of(f"run:{run.pk}", partial(_still, run, now)) for run in newest}
    return {run.pk: found.get(run.pk, Length()) for run in open_runs}


def _still(run: Run, now: datetime) -> Length:
    told = forecast_run(run, now=now)
    ends_at = (told.finishes_at or told.closes_at) if told else now
    return Length(seconds=(ends_at - now).total_seconds())


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
