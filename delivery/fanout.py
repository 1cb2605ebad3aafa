"""Makes runs, each with all its targets by one INSERT ... SELECT (SPEC R2, S2).

A run is made from a `Firing`: the frozen copy of a reminder. `reminders/fire.py` makes that copy, so that
nothing in here, nor in the engine, ever reads a reminder. Many that are due at once are made together, and
share every statement but that one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from django.db import connection, transaction
from django.utils import timezone

from delivery import lifecycle, summary
from delivery.audience import DEALT, GIVEN
from delivery.models import Run, RunAccount
from delivery.parts import FrozenPart
from delivery.planning import drip
from delivery.states import RunStatus
from delivery.window import Missed, on_fire


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
    drip: tuple[int, int] | None = None  # the shortest and longest seconds between two targets, each planned
    due_at: datetime | None = None
    behind: int | None = None  # the run that has to end before this one starts
    why_not: str = ""  # for a due moment that is only recorded
    key: UUID = field(default_factory=uuid4)
    # Of a second message or a follow-up: which it is, and to whom, each from the account that wrote before.
    kind: Run.Kind = Run.Kind.REMINDER
    given: Sequence[tuple[int, int]] = ()  # recipient and account
    first_target_id: int | None = None


# Whoever must not get it is in the run too, skipped, with the reason.
FAN_OUT = """
WITH made AS (
    INSERT INTO delivery_runtarget (run_id, recipient_id, account_id, status, not_before, error, settled_at)
    SELECT %(run)s, d.id, d.account_id,
           CASE WHEN d.refused = '' THEN 'pending' ELSE 'skipped' END,
           %(now)s, d.refused, CASE WHEN d.refused = '' THEN NULL ELSE %(now)s::timestamptz END
    FROM ({rows}) d ORDER BY d.id
    RETURNING status
)
SELECT count(*), count(*) FILTER (WHERE status = 'pending') FROM made
"""
TO_AUDIENCE, TO_GIVEN = FAN_OUT.format(rows=DEALT), FAN_OUT.format(rows=GIVEN)


MANY = 10_000


class NothingToSendError(ValueError):
    """The reminder cannot be fired as it is; the text says what is missing."""


@transaction.atomic
def make_run(firing: Firing) -> Run:
    """The run, waiting for its window or ready to go; refused if there is nothing to send."""
    (run,) = make_runs([firing])
    if run.total == 0:
        raise NothingToSendError(run.summary)
    return run


@transaction.atomic
def make_runs(firings: Sequence[Firing]) -> list[Run]:
    """The runs, in the same order. One that has nothing to send has failed, and its summary says what is missing."""
    runs = Run.objects.bulk_create([_empty_run(firing) for firing in firings])
    shares = [
        RunAccount(run=run, account_id=account_id)
        for run, firing in zip(runs, firings, strict=True)
        for account_id in firing.account_ids
    ]
    RunAccount.objects.bulk_create(shares)
    for run, firing in zip(runs, firings, strict=True):
        run.summary = _missing(firing) or _fill(run, firing)
    if sum(run.total for run in runs) >= MANY:
        _tell_planner()
    _start(runs, firings)
    return runs


def record_skipped(firings: Sequence[Firing]) -> list[Run]:
    """Due moments that are not run: each a run without targets, which is over and says why."""
    runs = [_empty_run(firing) for firing in firings]
    for run, firing in zip(runs, firings, strict=True):
        run.status, run.finished_at, run.summary = RunStatus.SKIPPED, run.fired_at, firing.why_not
    return Run.objects.bulk_create(runs)


def _empty_run(firing: Firing) -> Run:
    return Run(
        reminder_id=firing.reminder_id,
        owner_id=firing.owner_id,
        key=firing.key,
        kind=firing.kind,
        first_target_id=firing.first_target_id,
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
        drip_gap_min=firing.drip[0] if firing.drip else None,
        drip_gap_max=firing.drip[1] if firing.drip else None,
    )


def _missing(firing: Firing) -> str:
    if not firing.parts:
        return "This reminder has no message. Write one first."
    if not firing.account_ids:
        return "This reminder has no account to send from. Choose one first, or bring its archived one back."
    return ""


def _fill(run: Run, firing: Firing) -> str:
    """Make the run's targets, and say what is missing if there are none."""
    run.total, run.pending = _fan_out(run, firing)
    run.skipped = run.left_out = run.total - run.pending
    if run.drip and run.pending:
        # Saved first: a plan that is made next, in this transaction or another, counts what is in this one.
        run.save(update_fields=["total", "pending", "skipped", "left_out"])
        drip.plan(run, now=run.fired_at)
    return "" if run.total else "This reminder has no recipients. Choose some first."


def _fan_out(run: Run, firing: Firing) -> tuple[int, int]:
    arguments: dict[str, Any] = {
        "reminder": firing.reminder_id,
        "run": run.pk,
        "accounts": list(firing.account_ids),
        "now": run.fired_at,
        "recipients": [recipient_id for recipient_id, _ in firing.given],
        "from": [account_id for _, account_id in firing.given],
    }
    with connection.cursor() as cursor:
        cursor.execute(TO_GIVEN if firing.given else TO_AUDIENCE, arguments)
        total, pending = cursor.fetchone()
    return total, pending


def _tell_planner() -> None:
    """The engine's statements are planned by what the planner knows of the table, which just grew a lot."""
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE delivery_runtarget")


def _start(runs: Sequence[Run], firings: Sequence[Firing]) -> None:
    going = []
    for run, firing in zip(runs, firings, strict=True):
        if not run.pending:
            lifecycle.end_empty(run)
        elif _too_late(run):
            lifecycle.miss(run, summary.missed(run))
        elif firing.behind is not None:
            lifecycle.wait_behind(run, firing.behind)
        else:
            going.append(run)
    lifecycle.start(going)


def _too_late(run: Run) -> bool:
    """A due moment after the window's end is missed (W4); what answers somebody, or nobody, waits for the next."""
    fired_late = isinstance(on_fire(lifecycle.window_of(run), run.fired_at), Missed)
    return run.kind == Run.Kind.REMINDER and fired_late
