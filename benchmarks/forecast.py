"""The cost of a forecast: the simulation alone for 1,000 and 100,000 targets, and one of a reminder with its queries.

The simulation has the worst case together: caps per minute, hour and day, batches, a warm-up, a window on weekdays
and fifty runs ahead; the reminder shares its account with twenty other scheduled ones. The time is CPU time, the best
of a few rounds.
"""

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

from django.db import connection

from accounts.models import Account, Limit, User
from benchmarks.tables import scratch
from delivery.forecast import simulate
from delivery.pacing import Limits
from delivery.planning.values import Allowance, Job, Sender
from delivery.window import Window
from reminders.forecast import forecast
from reminders.models import Part, Reminder, ReminderAccount

TARGETS = 100_000
FEW = 1_000
MOST_MS = 200.0
ROUNDS = 5
NOW = datetime(2026, 3, 11, 10, tzinfo=UTC)
BUSINESS = Window(start_hour=9, end_hour=18, days=frozenset(range(5)), zone="Europe/Berlin")


def main(argv: Sequence[str]) -> dict[str, object]:
    targets = int(argv[0]) if argv else TARGETS
    plain = _ms(lambda: simulate([_plain(targets)], now=NOW))
    worst = _ms(lambda: simulate([_crowded(targets)], now=NOW))
    few = _ms(lambda: simulate([_crowded(FEW)], now=NOW))
    with scratch.database("forecast"):
        reminder = _reminder(targets)
        whole = _ms(lambda: forecast(reminder, now=NOW), clock=time.perf_counter)
    print(f"simulated, {FEW:,} targets behind fifty runs     {few:8.2f} ms")
    print(f"simulated, {targets:,} targets at 40 per minute   {plain:8.2f} ms")
    print(f"simulated, {targets:,} targets behind fifty runs  {worst:8.2f} ms")
    print(f"a reminder to {targets:,}, queries included       {whole:8.2f} ms")
    return {
        "targets": targets,
        "ms": round(worst, 2),
        "ms_for_1000": round(few, 2),
        "ms_plain": round(plain, 2),
        "ms_with_queries": round(whole, 2),
        "ok": worst < MOST_MS and few < MOST_MS / 10,
    }


def _ms(work: Callable[[], object], clock: Callable[[], float] = time.process_time) -> float:
    took = []
    for _ in range(ROUNDS):
        start = clock()
        work()
        took.append(clock() - start)
    return min(took) * 1000


def _plain(targets: int) -> Sender:
    return Sender(
        zone="Europe/Berlin",
        allowances={"message": Allowance(limits=Limits(per_minute=40))},
        jobs=[Job(targets=targets, window=BUSINESS, ready_at=NOW, own=True)],
    )


def _crowded(targets: int) -> Sender:
    limits = Limits(per_minute=40, per_hour=600, gap_min=1, gap_max=5, batch_size=75, batch_pause=30)
    ahead = [
        Job(
            targets=200,
            parts=1 + number % 3,
            window=Window(start_hour=6 + number % 6, end_hour=18, zone="Europe/Berlin"),
            ready_at=NOW + timedelta(hours=number),
        )
        for number in range(50)
    ]
    allowance = Allowance(limits=limits, day_caps=tuple(range(20, 3000, 30)), day_used=7)
    own = Job(targets=targets, parts=2, window=BUSINESS, ready_at=NOW, own=True)
    return Sender(zone="Asia/Kuala_Lumpur", allowances={"message": allowance}, jobs=[*ahead, own])


def _reminder(targets: int) -> Reminder:
    owner = User.objects.create(username="bench")
    account = Account.objects.create(
        owner=owner,
        name="Bench",
        channel="whatsapp",
        transport="sandbox",
        status=Account.Status.ACTIVE,
        profile="whatsapp_established",
    )
    Limit.objects.create(account=account, per_minute=40, per_day=5000)
    reminder = Reminder.objects.create(owner=owner, name="Bench", schedule="by_hand")
    Part.objects.create(reminder=reminder, text="Hello")
    ReminderAccount.objects.create(reminder=reminder, account=account)
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO accounts_recipient (owner_id, channel, kind, address, name, fields, attempts, created_at)
            SELECT %s, 'whatsapp', 'group', n || '@g.us', 'Group ' || n, '{}', 0, now()
            FROM generate_series(1, %s) n
            """,
            [owner.pk, targets],
        )
        cursor.execute(
            """
            INSERT INTO reminders_reminder_recipients (reminder_id, recipient_id)
            SELECT %s, id FROM accounts_recipient
            """,
            [reminder.pk],
        )
        _schedule_others(owner, account)
        cursor.execute("ANALYZE")
    return reminder


def _schedule_others(owner: User, account: Account) -> None:
    """Schedule twenty reminders that write to a thousand recipients every hour."""
    made = Reminder.objects.bulk_create(
        Reminder(
            owner=owner,
            name=f"Other {number}",
            schedule="cron",
            cron="0 * * * *",
            status="scheduled",
            next_fire_at=NOW + timedelta(hours=1),
        )
        for number in range(20)
    )
    ReminderAccount.objects.bulk_create(ReminderAccount(reminder=each, account=account) for each in made)
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO reminders_reminder_recipients (reminder_id, recipient_id)
            SELECT made, p.id FROM unnest(%s::bigint[]) made
            CROSS JOIN (SELECT id FROM accounts_recipient ORDER BY id LIMIT 1000) p
            """,
            [[each.pk for each in made]],
        )
