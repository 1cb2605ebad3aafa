"""10,000 cron reminders, 1,000 of them due in the same minute: how long until all have fired, and each only once.

With two workers and two beats, as in production; the messages of the runs are sent meanwhile.
"""

import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from statistics import median

from django.db import connection
from django.db.models import Count, Max
from django.utils import timezone

from accounts.models import Account
from benchmarks.rig import Rig, rig
from delivery.models import Run
from reminders.due import tick
from reminders.models import Part, Reminder, ReminderAccount
from reminders.moments import next_moment
from reminders.readiness import timetable_of

REMINDERS = 10_000
DUE = 1_000
ACCOUNTS = 50
RECIPIENTS = 10
TICKS = 200


def main(argv: Sequence[str]) -> dict[str, object]:
    due_now = int(argv[0]) if argv else DUE
    with rig("firing") as bench:
        accounts = bench.accounts(ACCOUNTS, per_minute=40, concurrency=3)
        bench.recipients(RECIPIENTS)
        bench.start_workers(2, threads=64)
        bench.start("celery", "-A", "config", "beat", "--loglevel=warning")
        moment = (timezone.now() + timedelta(seconds=90)).replace(second=0, microsecond=0)
        _make_reminders(bench, accounts, moment, due_now)
        idle = _idle_tick_ms()
        seconds = _fired_after(moment, due_now)
        fired = Run.objects.filter(due_at=moment)
        doubled = fired.values("reminder").annotate(runs=Count("pk")).filter(runs__gt=1).count()
        whole = fired.filter(total=RECIPIENTS).count()
    print(f"{whole} of {due_now} fired within {seconds:6.2f} s of their moment, {doubled} of them twice")
    print(f"a tick with nothing due took    {idle:6.2f} ms")
    return {
        "due": due_now,
        "fired": whole,
        "doubled": doubled,
        "seconds": round(seconds, 2),
        "idle_tick_ms": round(idle, 2),
        "ok": whole == due_now and not doubled and seconds < 10 and idle < 20,
    }


def _make_reminders(bench: Rig, accounts: Sequence[Account], moment: datetime, due_now: int) -> None:
    """Make reminders: the first are due at `moment`, the others at other minutes of the next days."""
    crons = [f"{moment.minute} {moment.hour} * * *"] * due_now
    later = moment + timedelta(hours=2)
    crons += [f"{n % 60} {later.hour} * * {n % 7}" for n in range(REMINDERS - due_now)]
    made = Reminder.objects.bulk_create(_reminder(bench, cron) for cron in crons)
    Part.objects.bulk_create(Part(reminder=reminder, text="Hello {{ name }}") for reminder in made)
    ReminderAccount.objects.bulk_create(
        ReminderAccount(reminder=reminder, account=accounts[number % len(accounts)])
        for number, reminder in enumerate(made)
    )
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO reminders_reminder_recipients (reminder_id, recipient_id)
            SELECT r.id, p.id FROM reminders_reminder r CROSS JOIN accounts_recipient p
            """
        )
        cursor.execute("ANALYZE")


def _reminder(bench: Rig, cron: str) -> Reminder:
    reminder = Reminder(
        owner=bench.owner,
        name=f"At {cron}",
        status=Reminder.Status.SCHEDULED,
        schedule=Reminder.Schedule.CRON,
        cron=cron,
        window_start_hour=0,
        window_end_hour=24,
    )
    timetable = timetable_of(reminder)
    assert timetable is not None
    reminder.next_fire_at = next_moment(timetable, after=timezone.now())
    return reminder


def _idle_tick_ms() -> float:
    """Return the time of a tick while nothing is due."""
    took = []
    for _ in range(TICKS):
        start = time.perf_counter()
        tick()
        took.append((time.perf_counter() - start) * 1000)
    return median(took)


def _fired_after(moment: datetime, count: int) -> float:
    """Return the seconds from the moment until the last of its runs existed."""
    if datetime.now(UTC) >= moment:
        raise RuntimeError("Making the reminders took longer than the time until they are due.")
    deadline = time.monotonic() + 180
    fired = Run.objects.filter(due_at=moment)
    while fired.count() < count and time.monotonic() < deadline:
        time.sleep(0.1)
    seen = datetime.now(UTC)
    time.sleep(3)  # a second run for the same moment would come with one of the next ticks
    last = fired.aggregate(last=Max("fired_at"))["last"] or seen
    return (max(seen, last) - moment).total_seconds()
