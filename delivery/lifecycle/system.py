"""Moves of a run that the engine and the tick make: start, wait, open and close its window, settle."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from accounts.models import Account
from delivery import conf
from delivery.lifecycle import events
from delivery.lifecycle.people import pause
from delivery.lifecycle.steps import (
    SETTING_OUT,
    announce_later,
    finish,
    go_on,
    hold,
    in_doubt,
    leave_in_doubt,
    locked,
    release_claims,
    serve,
    set_out,
    settle_if_done,
    skip_pending,
    state_of,
    stop_for,
    stopped_accounts,
    window_of,
)
from delivery.limits import full_days
from delivery.models import Run, RunTarget
from delivery.sentences import run_summary
from delivery.states import SETTLED_RUN, PauseReason, RunStatus, TargetStatus
from delivery.window import CloseMove, Missed, is_open, on_close, on_fire, opens_at


def start(runs: Sequence[Run], *, behind: Mapping[int, int]) -> None:
    """Decide what runs that were just made do first: start, wait or end. One statement for all that start.

    `behind` names, by the run's id, the run that has to end before. The window is judged here and nowhere else, at
    the moment of firing: a large fan-out that ends after the window's close does not turn "start" into "tomorrow".
    """
    starting = []
    events.runs_made(runs)
    for run in runs:
        if not run.pending:
            finish(run)
        elif _is_too_late(run):
            _miss(run)
        elif run.pk in behind:
            _wait_behind(run, behind[run.pk])
        else:
            set_out(run, run.fired_at, ready_at=run.undo_until)
            starting.append(run)
    Run.objects.bulk_update(starting, SETTING_OUT)
    events.runs_started(starting)
    serve(starting)
    for run in starting:
        announce_later(run)


def _is_too_late(run: Run) -> bool:
    """Return whether a run was fired after the end of that day's window (W4).

    A second message, a follow-up or a single message is never too late: it waits for the next window.
    """
    return run.kind == Run.Kind.REMINDER and isinstance(on_fire(window_of(run), run.fired_at), Missed)


@transaction.atomic
def start_waiting(run: Run) -> Run:
    """Start a run, because the run that it waited for has ended."""
    run = locked(run)
    if run.status == RunStatus.QUEUED and run.opens_at is None:
        go_on(run, ready_at=run.undo_until)
    return run


def _wait_behind(run: Run, ahead: int) -> None:
    """Let a run that was just made wait until the last run of its reminder has ended."""
    run.summary = run_summary.behind(ahead)
    run.save()
    announce_later(run)


def _miss(run: Run) -> None:
    """Fail a run that was fired after its window; nothing of it is sent."""
    why = run_summary.missed(run)
    skip_pending(run, "fired after the delivery window")
    run.summary = why
    finish(run)


@transaction.atomic
def open_window(run: Run) -> Run:
    """Let a run continue, because the window that it waited for is open."""
    run = locked(run)
    if run.status in {RunStatus.QUEUED, RunStatus.PAUSED} and run.opens_at and run.opens_at <= timezone.now():
        go_on(run)
    return run


@transaction.atomic
def close_window(run: Run) -> Run:
    """Pause, fail, settle or let wait a running run whose window has closed (W4, W5, W6)."""
    run = locked(run)
    now = timezone.now()
    if run.status != RunStatus.RUNNING or run.closes_at is None or run.closes_at > now:
        return run
    window = window_of(run)
    if is_open(window, now):
        go_on(run)
        return run
    release_claims(run)
    if run.sending:
        run.save()
        return run  # messages under way get their outcome first; the next tick decides
    _close(run, now, opens_at(window, now))
    return run


def _close(run: Run, now: datetime, opening: datetime) -> None:
    if _wait_for_accounts(run):
        return
    first = full_days.first_planned(run)
    later = first is not None and first > now
    full = later and bool(full_days.full_accounts(run, now=now))
    pending = RunTarget.objects.filter(run=run, status=TargetStatus.PENDING)
    begun = pending.filter(Q(parts_done__gt=0) | Q(attempts__gt=0)).count()
    troubled = Account.objects.filter(targets__in=pending).exclude(trouble_kind="").exists()
    move = on_close(
        # A target that was interrupted between two parts, or waits for another try or for an account in trouble, is
        # a reason to resume.
        sent=run.sent + run.unconfirmed + begun + troubled,
        pending=run.pending,
        resumes_by_itself=run.resumes_by_itself,
        planned_later=later and not begun,
        day_full=full,
    )
    if move is CloseMove.SETTLE:
        settle_if_done(run)
    elif move is CloseMove.FAIL:
        skip_pending(run, "the delivery window closed before anything could be sent")
        run.summary = run_summary.closed_before_first(run)
        finish(run)
    elif move is CloseMove.CARRY_ON and not run.resumes_by_itself:
        run.status, run.opens_at = RunStatus.QUEUED, opening
        run.save()
        events.run_paused(run)  # it sends nothing until then, and is told as resumed
        announce_later(run)
    else:
        run.opens_at = (first if full else opening) if move is CloseMove.CARRY_ON else None
        reason = PauseReason.DAILY_CAP if full else PauseReason.WINDOW_CLOSED
        hold(run, reason, run_summary.window_closed(run), opens_at=run.opens_at)


@transaction.atomic
def wait_for_accounts(run: Run) -> Run:
    """Pause a running run of which only the shares of stopped accounts are left: the others have sent theirs.

    A hand-over let the run go on without these. It continues by itself when one of them is back.
    """
    run = locked(run)
    if run.status == RunStatus.RUNNING and not run.sending:
        _wait_for_accounts(run)
    return run


def _wait_for_accounts(run: Run) -> bool:
    for account in stopped_accounts(run, TargetStatus.PENDING)[:1]:
        stop_for(run, account, account.status_reason or state_of(account))
    return run.status == RunStatus.PAUSED


@transaction.atomic
def trip(run_id: int, *, doubts: bool = True) -> bool:
    """Pause a run whose error rate is too high since it was last resumed; return whether it was paused.

    `doubts` says that messages in doubt count (P6). They do not count after a message went well: a run that continues
    after its service was in trouble is not stopped for trouble that is over.
    """
    run = Run.objects.select_for_update(no_key=True).get(pk=run_id)
    # Targets that a person decided on meanwhile are no longer in doubt, so the count may have fallen.
    in_doubt = max(0, run.unconfirmed - run.unconfirmed_before) if doubts else 0
    returned = run.returned - run.returned_before
    arrived = run.sent - run.sent_before - returned
    since = conf.trips(max(0, arrived), run.failed - run.failed_before + returned + in_doubt)
    if run.status == RunStatus.RUNNING and since:
        pause(run, reason=PauseReason.ERROR_RATE)
        return True
    return False


@transaction.atomic
def settle(run_id: int) -> None:
    """End a run that has nothing left to send."""
    run = Run.objects.select_for_update(no_key=True).get(pk=run_id)
    if run.status not in SETTLED_RUN:
        settle_if_done(run)


@transaction.atomic
def take_back(run_id: int, *, most: int) -> bool:
    """Skip up to `most` pending targets of a canceled run; return whether more are left.

    Each slice is a transaction, so a crash leaves the rest for the next tick. A run that somebody else has locked is
    left for then, too.
    """
    free = Run.objects.canceling().select_for_update(no_key=True, skip_locked=True)
    run = free.filter(pk=run_id).first()
    if run is None:
        return False
    settle_if_done(run, most=most)
    return run.pending > 0


@transaction.atomic
def withdraw(recipient_id: int, *, kind: Run.Kind, why: str) -> int:
    """Skip a recipient's targets in runs of a kind that have not begun to leave; return how many were skipped.

    One whose message may have arrived becomes unconfirmed instead, and does not count.
    """
    on_its_way = Q(status=TargetStatus.PENDING) | Q(status=TargetStatus.SENDING, begun_at__isnull=True)
    targets = RunTarget.objects.filter(on_its_way, recipient=recipient_id, run__kind=kind)
    runs = sorted(set(targets.values_list("run_id", flat=True)))
    return sum(_withdraw_from(run_id, targets, why) for run_id in runs)


def _withdraw_from(run_id: int, targets: QuerySet[RunTarget], why: str) -> bool:
    run = Run.objects.select_for_update(no_key=True).get(pk=run_id)
    target = targets.filter(run=run).select_for_update(of=("self",)).first()
    if target is None or run.status in SETTLED_RUN:
        return False
    was, now = TargetStatus(target.status), timezone.now()
    setattr(run, was, getattr(run, was) - 1)
    doubtful = RunTarget.objects.filter(in_doubt(), pk=target.pk).exists()
    if doubtful:
        run.unconfirmed += leave_in_doubt([target.pk], now=now)
    else:
        target.status, target.error, target.settled_at = TargetStatus.SKIPPED, why, now
        target.claimed_at = None
        target.save(update_fields=["status", "error", "settled_at", "claimed_at"])
        run.skipped += 1
    run.save()
    settle_if_done(run)
    return not doubtful
