"""Makes a run with all its targets, by one INSERT ... SELECT (SPEC R2, S2).

A run is made from a `Firing`: the frozen copy of a reminder. `reminders/fire.py` makes that copy, so that
nothing in here, nor in the engine, ever reads a reminder.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection, transaction
from django.utils import timezone

from delivery import lifecycle, summary
from delivery.models import Run, RunAccount
from delivery.parts import FrozenPart
from delivery.window import Missed, Open, Waits, on_fire


@dataclass(frozen=True, slots=True, kw_only=True)
class Firing:
    """All that a run needs of its reminder."""

    reminder_id: int
    owner_id: int
    name: str
    action: str
    subject: str
    parts: Sequence[FrozenPart]
    zone: str
    window_start_hour: int
    window_end_hour: int
    send_days: int
    resumes_by_itself: bool
    priority: int
    account_ids: Sequence[int]  # in turn; a recipient that is tied to one of them stays with it
    due_at: datetime | None = None


# Who gets it: those named and those tagged, each once, dealt to the accounts in turn. Whoever must not get it is
# in the run too, skipped, with the reason.
FAN_OUT = """
WITH audience AS (
    SELECT recipient_id AS id FROM reminders_reminder_recipients WHERE reminder_id = %(reminder)s
    UNION
    SELECT tagged.recipient_id FROM accounts_recipient_tags tagged
    JOIN reminders_reminder_tags wanted ON wanted.tag_id = tagged.tag_id
    WHERE wanted.reminder_id = %(reminder)s
), dealt AS (
    SELECT p.id, p.account_id, row_number() OVER (ORDER BY p.id) - 1 AS turn,
           CASE WHEN p.opted_out_at IS NOT NULL THEN 'opted out'
                WHEN p.blocked_at IS NOT NULL THEN 'blocked'
                WHEN p.archived_at IS NOT NULL THEN 'no longer reachable'
                WHEN p.account_id <> ALL(%(accounts)s) THEN 'reached only by another account'
                ELSE '' END AS refused
    FROM audience JOIN accounts_recipient p ON p.id = audience.id
), made AS (
    INSERT INTO delivery_runtarget (run_id, recipient_id, account_id, status, not_before, error, settled_at)
    SELECT %(run)s, d.id,
           CASE WHEN d.account_id = ANY(%(accounts)s) THEN d.account_id
                ELSE (%(accounts)s::bigint[])[1 + d.turn %% %(dealers)s] END,
           CASE WHEN d.refused = '' THEN 'pending' ELSE 'skipped' END,
           %(now)s, d.refused, CASE WHEN d.refused = '' THEN NULL ELSE %(now)s::timestamptz END
    FROM dealt d ORDER BY d.id
    RETURNING status
)
SELECT count(*), count(*) FILTER (WHERE status = 'pending') FROM made
"""


MANY = 10_000


class NothingToSendError(ValueError):
    """The reminder cannot be fired as it is; the text says what is missing."""


@transaction.atomic
def make_run(firing: Firing) -> Run:
    """The run, with every target, waiting for its window or ready to go."""
    if not firing.parts:
        raise NothingToSendError("This reminder has no message. Write one first.")
    if not firing.account_ids:
        raise NothingToSendError("This reminder has no account to send from. Choose one first.")
    run = _empty_run(firing)
    total, pending = _fan_out(run, firing)
    if total == 0:
        raise NothingToSendError("This reminder has no recipients. Choose some first.")
    run.total, run.pending, run.skipped = total, pending, total - pending
    if total >= MANY:
        _tell_planner()
    _start(run)
    return run


def _empty_run(firing: Firing) -> Run:
    run = Run.objects.create(
        reminder_id=firing.reminder_id,
        owner_id=firing.owner_id,
        due_at=firing.due_at,
        fired_at=timezone.now(),
        name=firing.name,
        action=firing.action,
        subject=firing.subject,
        parts=[part.as_json() for part in firing.parts],
        zone=firing.zone,
        window_start_hour=firing.window_start_hour,
        window_end_hour=firing.window_end_hour,
        send_days=firing.send_days,
        resumes_by_itself=firing.resumes_by_itself,
        priority=firing.priority,
    )
    shares = [RunAccount(run=run, account_id=account_id) for account_id in firing.account_ids]
    RunAccount.objects.bulk_create(shares)
    return run


def _fan_out(run: Run, firing: Firing) -> tuple[int, int]:
    arguments: dict[str, Any] = {
        "reminder": firing.reminder_id,
        "run": run.pk,
        "accounts": list(firing.account_ids),
        "dealers": len(firing.account_ids),
        "now": run.fired_at,
    }
    with connection.cursor() as cursor:
        cursor.execute(FAN_OUT, arguments)
        total, pending = cursor.fetchone()
    return total, pending


def _tell_planner() -> None:
    """The engine's statements are planned by what the planner knows of the table, which just grew a lot."""
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE delivery_runtarget")


def _start(run: Run) -> None:
    match on_fire(lifecycle.window_of(run), run.fired_at):
        case Missed():
            lifecycle.miss(run, summary.missed(run))
        case Open() | Waits():
            lifecycle.start(run)
