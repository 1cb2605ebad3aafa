"""What a window does to a run when it opens, and when it closes (SPEC W3 to W6)."""

from datetime import datetime

from django.db import transaction
from django.utils import timezone

from delivery import full_days, summary
from delivery.lifecycle.ending import finish, settle_if_done, skip_pending
from delivery.lifecycle.going import go_on, window_of
from delivery.lifecycle.holding import hold, release_claims
from delivery.lifecycle.locking import locked
from delivery.lifecycle.telling import announce_later
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
    _close(run, now, opens_at(window, now))
    return run


def _close(run: Run, now: datetime, opening: datetime) -> None:
    first = full_days.first_planned(run)
    later = first is not None and first > now
    full = later and bool(full_days.full_accounts(run, now=now))
    half_sent = RunTarget.objects.filter(run=run, status=TargetStatus.PENDING, parts_done__gt=0).count()
    move = on_close(
        # Of what was interrupted between two parts something has left: it is worth resuming.
        sent=run.sent + run.unconfirmed + half_sent,
        pending=run.pending,
        resumes_by_itself=run.resumes_by_itself,
        planned_later=later,
        day_full=full,
    )
    if move is CloseMove.SETTLE:
        settle_if_done(run)
    elif move is CloseMove.FAIL:
        skip_pending(run, "the delivery window closed before anything could be sent")
        run.summary = summary.closed_before_first(run)
        finish(run)
    elif move is CloseMove.CARRY_ON and not run.resumes_by_itself:
        run.status, run.opens_at = RunStatus.QUEUED, opening
        run.save()
        announce_later(run)
    else:
        run.opens_at = (first if full else opening) if move is CloseMove.CARRY_ON else None
        reason = PauseReason.DAILY_CAP if full else PauseReason.WINDOW_CLOSED
        hold(run, reason, summary.window_closed(run), opens_at=run.opens_at)
