"""What a window does to a run when it opens, and when it closes (SPEC W3 to W6)."""

from datetime import datetime

from django.db import transaction
from django.utils import timezone

from delivery import summary
from delivery.lifecycle.ending import finish, settle_if_done, skip_pending
from delivery.lifecycle.going import go_on, window_of
from delivery.lifecycle.holding import release_claims
from delivery.lifecycle.locking import locked
from delivery.lifecycle.telling import announce_later, tell_later
from delivery.models import Run, RunTarget
from delivery.states import PauseReason, RunStatus, TargetStatus
from delivery.window import CloseMove, is_open, on_close, opens_at


@transaction.atomic
def open_window(run: Run) -> Run:
    """The window of a run that waits for it is open: go on."""
    run = locked(run)
    if run.status in {RunStatus.QUEUED, RunStatus.PAUSED} and run.opens_at and run.opens_at <= timezone.now():
        go_on(run)
    return run


@transaction.atomic
def close_window(run: Run) -> Run:
    """The window of a running run has closed: pause, fail, wait for the next one or settle (W4, W5, W6)."""
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
        return run  # what is in the air lands first; the next tick decides
    later = RunTarget.objects.filter(run=run, status=TargetStatus.PENDING, not_before__gt=now).count()
    move = on_close(
        sent=run.sent + run.unconfirmed,
        pending=run.pending,
        resumes_by_itself=run.resumes_by_itself,
        planned_later=later,
    )
    _close(run, move, opens_at(window, now))
    return run


def _close(run: Run, move: CloseMove, next_opening: datetime) -> None:
    if move is CloseMove.SETTLE:
        settle_if_done(run)
    elif move is CloseMove.FAIL:
        skip_pending(run, "the delivery window closed before anything could be sent")
        run.summary = summary.closed_before_first(run)
        finish(run)
    elif move is CloseMove.CARRY_ON and not run.resumes_by_itself:
        run.status, run.opens_at = RunStatus.QUEUED, next_opening
        run.save()
        announce_later(run)
    else:
        run.status, run.pause_reason = RunStatus.PAUSED, PauseReason.WINDOW_CLOSED
        run.opens_at = next_opening if move is CloseMove.CARRY_ON else None
        run.summary = summary.window_closed(run)
        run.save()
        tell_later(run)
