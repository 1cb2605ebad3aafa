"""Makes runs, each with all its targets by one INSERT ... SELECT (SPEC R2, S2).

A run is made from a `Firing`: the frozen copy of a reminder. `reminders/fire.py` makes that copy, so that neither
this module nor the engine ever reads a reminder. Runs that are due at once are made together, and share every
statement but that INSERT.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from django.db import connection, transaction
from django.utils import timezone

from accounts.models import Account
from accounts.models.account import Action
from delivery import conf, lifecycle
from delivery.audience import GIVEN, REFUSED, REFUSED_OR_RECEIVED, WANTED
from delivery.limits.lookup import limits_for
from delivery.models import Run, RunAccount
from delivery.parts import FrozenPart
from delivery.planning import drip, new_people, rooms
from delivery.planning.rooms import Rooms
from delivery.senders.deal import dealt
from delivery.states import RunStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Firing:
    """The frozen copy of a reminder: all that a run needs."""

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
    account_ids: Sequence[int]  # `senders/deal.py` says who sends to whom
    drip: tuple[int, int] | None = (
        None  # least and most seconds between two targets, each of which has a planned time
    )
    due_at: datetime | None = None
    behind: int | None = None  # the run that has to end before this one starts
    why_not: str = ""  # for a due moment that is only recorded
    key: UUID = field(default_factory=uuid4)
    undo: timedelta = (
        timedelta()
    )  # how long its sender can take it back, if it has more than `ASKS_ABOVE` recipients
    without: Sequence[int] = ()  # earlier runs: recipients who received one of them are left out
    # Of a second message or a follow-up: its kind, and the recipients, each with the account that wrote before.
    kind: Run.Kind = Run.Kind.REMINDER
    given: Sequence[tuple[int, int]] = ()  # recipient and account
    follows: Sequence[
        int
    ] = ()  # the target of the first message, for each of `given`; e-mails continue its thread
    first_target_id: int | None = None


# Recipients who must not get the message are in the run too: skipped, with the reason.
FAN_OUT = """
WITH made AS (
    INSERT INTO delivery_runtarget (run_id, recipient_id, account_id, status, not_before, error, settled_at)
    SELECT %(run)s, d.recipient_id, d.account_id,
           CASE WHEN d.refused = '' THEN 'pending' ELSE 'skipped' END,
           %(now)s, d.refused, CASE WHEN d.refused = '' THEN NULL ELSE %(now)s::timestamptz END
    FROM ({rows}) d ORDER BY d.recipient_id
    RETURNING status
)
SELECT count(*), count(*) FILTER (WHERE status = 'pending') FROM made
"""
TO_GIVEN = FAN_OUT.replace("{rows}", GIVEN)

# Apart from the fan-out, which stays the same for all: only some hundreds of e-mails continue a conversation.
CONTINUE = """
UPDATE delivery_runtarget t SET continues = array_append(COALESCE(first.earlier_ids, '{}'), first.provider_id)
FROM unnest(%(recipients)s::bigint[], %(follows)s::bigint[]) given(recipient_id, target_id)
JOIN delivery_runtarget first ON first.id = given.target_id AND first.provider_id <> ''
WHERE t.run_id = %(run)s AND t.recipient_id = given.recipient_id
"""

MANY = 10_000


class NothingToSendError(ValueError):
    """Raised when a reminder cannot be fired as it is; the text says what is missing."""


@transaction.atomic
def make_run(firing: Firing) -> Run:
    """Make one run, which starts or waits for its window; raise NothingToSendError if it has no recipients."""
    (run,) = make_runs([firing])
    if run.total == 0:
        raise NothingToSendError(run.summary)
    return run


@transaction.atomic
def make_runs(firings: Sequence[Firing]) -> list[Run]:
    """Make runs and return them in the order of `firings`.

    A run that has nothing to send has failed, and its summary says what is missing.
    """
    runs = Run.objects.bulk_create([_empty_run(firing) for firing in firings])
    shares = [
        RunAccount(run=run, account_id=account_id)
        for run, firing in zip(runs, firings, strict=True)
        for account_id in firing.account_ids
    ]
    RunAccount.objects.bulk_create(shares)
    wanted = [(firing.account_ids, firing.action) for firing in firings if not firing.given]
    room = rooms.read(wanted, now=timezone.now())
    for run, firing in zip(runs, firings, strict=True):
        run.summary = _missing(firing) or _fill(run, firing, room)
    _spread_people([run for run in runs if run.pending and not run.drip], shares)
    if sum(run.total for run in runs) >= MANY:
        _tell_planner()
    for run, firing in zip(runs, firings, strict=True):
        if firing.undo and run.pending > conf.ASKS_ABOVE:
            run.undo_until = timezone.now() + firing.undo  # from now: a large fan-out takes a while
    behind = {run.pk: firing.behind for run, firing in zip(runs, firings, strict=True) if firing.behind}
    lifecycle.start(runs, behind=behind)
    return runs


def record_skipped(firings: Sequence[Firing]) -> list[Run]:
    """Record due moments that are not run: each as a skipped run without targets, whose summary says why."""
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


def _fill(run: Run, firing: Firing, room: Rooms) -> str:
    """Make the run's targets; return a sentence that says what is missing if there are none."""
    run.total, run.pending = _fan_out(run, firing, room)
    run.skipped = run.left_out = run.total - run.pending
    if run.drip and run.pending:
        # Saved first: the next plan, in this transaction or another, counts the targets of this run.
        run.save(update_fields=["total", "pending", "skipped", "left_out"])
        drip.plan(run, now=run.fired_at)
    return "" if run.total else "This reminder has no recipients. Choose some first."


def _spread_people(runs: Sequence[Run], shares: Sequence[RunAccount]) -> None:
    """Let new people follow the known ones, over the days, where accounts of the runs have a limit for them."""
    spread = {run.pk: run for run in runs}
    mine = sorted((share for share in shares if share.run_id in spread), key=lambda share: share.account_id)
    ids = {share.account_id for share in mine}
    accounts = Account.objects.defer("credentials").in_bulk(ids) if ids else {}
    asked = [(spread[share.run_id], accounts[share.account_id]) for share in mine]
    limits = limits_for((account, run.action) for run, account in asked) if asked else {}
    for run, account in asked:
        if new_people.limit_people(limits[account.pk, run.action]):
            new_people.spread(run, account, now=run.fired_at)


def _fan_out(run: Run, firing: Firing, room: Rooms) -> tuple[int, int]:
    arguments: dict[str, Any] = {
        "reminder": firing.reminder_id,
        "run": run.pk,
        "accounts": list(firing.account_ids),
        "now": run.fired_at,
        "recipients": [recipient_id for recipient_id, _ in firing.given],
        "from": [account_id for _, account_id in firing.given],
        "without": list(firing.without),
    }
    if firing.given:
        rows = TO_GIVEN
    else:
        deal = room.deal(firing.account_ids, firing.action, parts=len(firing.parts))
        refused = REFUSED_OR_RECEIVED if firing.without else REFUSED
        rows = FAN_OUT.replace("{rows}", dealt(WANTED.format(refused=refused, more=""), deal))
        arguments |= deal.arguments
    with connection.cursor() as cursor:
        cursor.execute(rows, arguments)
        total, pending = cursor.fetchone()
        if firing.follows and firing.action == Action.EMAIL:
            cursor.execute(CONTINUE, arguments | {"follows": list(firing.follows)})
    return total, pending


def _tell_planner() -> None:
    """Analyze the targets: the table just grew a lot, and the engine's statements are planned by its statistics."""
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE delivery_runtarget")
