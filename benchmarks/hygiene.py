"""A queue of 50,000 follow-ups: how long one pass of hygiene takes, and what memory it costs."""

import argparse
import time
from collections.abc import Sequence

from django.db import connection
from django.utils import timezone

from accounts.models import Account, User
from benchmarks.memory import peak
from benchmarks.tables import scratch
from delivery.models import Run
from reminders.follow_ups import hygiene
from reminders.models import FollowUp, FollowUpStep, Reminder

ROWS = 50_000
PROMISED_SECONDS = 10

# Of every ten recipients two are fine; the others have a reason each, one of them a cooldown that is over.
PEOPLE = """
INSERT INTO accounts_recipient (owner_id, channel, kind, address, name, fields, attempts, created_at,
    converted_at, opted_out_at, blocked_at, not_interested_at, cooldown_until)
SELECT %(owner)s, 'whatsapp', 'person', '+6012' || lpad(n::text, 7, '0'), 'Recipient ' || n, '{}',
    CASE WHEN n %% 10 BETWEEN 4 AND 8 THEN 3 ELSE 0 END, now(),
    CASE n %% 10 WHEN 1 THEN now() END, CASE n %% 10 WHEN 2 THEN now() END, CASE n %% 10 WHEN 3 THEN now() END,
    CASE WHEN n %% 10 IN (6, 7, 8, 9) THEN now() END,
    CASE n %% 10 WHEN 6 THEN now() + interval '1 day' WHEN 7 THEN now() + interval '1 day'
                 WHEN 8 THEN now() - interval '1 hour' END
FROM generate_series(1, %(rows)s) n
"""
TARGETS = """
INSERT INTO delivery_runtarget (run_id, recipient_id, account_id, status, not_before, settled_at)
SELECT %(run)s, p.id, %(account)s, 'sent', now(), now() FROM accounts_recipient p
"""
QUEUE = """
INSERT INTO reminders_followup (step_id, recipient_id, target_id, urgency, status, due_at, removed_reason, queued_at)
SELECT %(step)s, t.recipient_id, t.id, 'medium', 'queued', now() + interval '1 day', '', now()
FROM delivery_runtarget t
"""


def main(argv: Sequence[str]) -> dict[str, object]:
    parser = argparse.ArgumentParser(prog="python -m benchmarks hygiene", description=__doc__)
    parser.add_argument("rows", type=int, nargs="?", default=ROWS)
    rows = parser.parse_args(argv).rows
    with scratch.database("hygiene"):
        _fill(rows)
        with peak() as memory:
            start = time.monotonic()
            cooled_down = hygiene.end_cooldowns()
            removed = hygiene.clean()
            seconds = time.monotonic() - start
        left = FollowUp.objects.filter(status=FollowUp.Status.QUEUED).count()
    for reason, number in sorted(removed.items()):
        print(f"{reason:<20} {number:>7,}")
    print(f"{'left in the queue':<20} {left:>7,}   {seconds:.2f} s   memory +{memory.mb:.0f} MB")
    return {
        "rows": rows,
        "seconds": round(seconds, 2),
        "peak_mb": round(memory.mb, 1),
        "removed": dict(removed),
        "cooled_down": cooled_down,
        "ok": seconds < PROMISED_SECONDS and left + sum(removed.values()) == rows,
    }


def _fill(rows: int) -> None:
    owner = User.objects.create(username="asker")
    account = Account.objects.create(owner=owner, name="Asker", channel="whatsapp", transport="sandbox")
    reminder = Reminder.objects.create(owner=owner, name="Fair")
    step = FollowUpStep.objects.create(reminder=reminder, after_hours=24, text="Did you see this?")
    run = Run.objects.create(
        reminder=reminder,
        owner=owner,
        fired_at=timezone.now(),
        name="Fair",
        action="message",
        parts=[],
        zone="UTC",
        window_start_hour=0,
        window_end_hour=24,
        send_days=127,
    )
    with connection.cursor() as cursor:
        cursor.execute(PEOPLE, {"owner": owner.pk, "rows": rows})
        cursor.execute(TARGETS, {"run": run.pk, "account": account.pk})
        cursor.execute(QUEUE, {"step": step.pk})
        for table in ("accounts_recipient", "delivery_runtarget", "reminders_followup"):
            cursor.execute(f"ANALYZE {table}")
