"""What people do to a run."""

from django.db import transaction
from django.utils import timezone

from accounts.models import User
from delivery.lifecycle.daily_caps import ready_at
from delivery.lifecycle.ending import settle_if_done
from delivery.lifecycle.going import go_on
from delivery.lifecycle.holding import hold, refuse, release_claims, stopped_accounts
from delivery.lifecycle.locking import WrongStateError, locked, require
from delivery.models import Run, RunTarget
from delivery.states import SETTLED_RUN, PauseReason, RunStatus, TargetStatus


@transaction.atomic
def pause(run: Run, *, reason: PauseReason, by: User | None = None, detail: str = "") -> Run:
    """Hold a run still: nothing leaves after this is committed but what is already in the air.

    One that is paused until its window opens or its account is back stays so from now on until a person resumes it.
    """
    run = locked(run, by)
    require(
        run,
        RunStatus.PAUSED,
        "Only a run that is queued or running, or goes on by itself, can be paused.",
        different=not run.goes_on_by_itself,
    )
    run.changed_by = by
    hold(run, reason, detail)
    return run


@transaction.atomic
def resume(run: Run, *, by: User | None = None) -> Run:
    """Go on with the pending targets, now or when the window opens next."""
    run = locked(run, by)
    if run.status != RunStatus.PAUSED:
        raise WrongStateError(f"Run {run.pk} is {run.status}: only a paused run can be resumed.")
    if run.canceled_at is not None:
        raise WrongStateError(
            f"Run {run.pk} was canceled and is about to end: fire its reminder again instead."
        )
    refuse(run, stopped_accounts(run, TargetStatus.PENDING))
    run.changed_by = by
    run.sent_before, run.failed_before = run.sent, run.failed
    go_on(run, ready_at=ready_at(run))
    return run


@transaction.atomic
def cancel(run: Run, *, by: User | None = None) -> Run:
    """Skip what is left. What is in the air still lands, and then the run settles."""
    run = locked(run, by)
    if run.status in SETTLED_RUN:
        raise WrongStateError(f"Run {run.pk} is {run.status} already: there is nothing left to cancel.")
    release_claims(run)
    run.canceled_at = run.canceled_at or timezone.now()
    run.changed_by = by
    if run.status != RunStatus.PAUSED:
        run.status, run.pause_reason = RunStatus.PAUSED, PauseReason.OPERATOR
    run.opens_at = None
    run.save()
    settle_if_done(run)
    return run


@transaction.atomic
def retry_failed(run: Run, *, by: User | None = None) -> Run:
    """Queue the failed targets of a settled run again, and only those."""
    run = locked(run, by)
    if run.status not in {RunStatus.PARTIAL, RunStatus.FAILED}:
        raise WrongStateError(
            f"Run {run.pk} is {run.status}: only a run that ended partial or failed can be retried."
        )
    if run.failed == 0:
        raise WrongStateError(f"Run {run.pk} has no failed targets: there is nothing to retry.")
    refuse(run, stopped_accounts(run, TargetStatus.FAILED))
    failed = RunTarget.objects.filter(run=run, status=TargetStatus.FAILED)
    moved = failed.update(
        status=TargetStatus.PENDING, attempts=0, not_before=timezone.now(), settled_at=None, error=""
    )
    run.failed, run.pending = run.failed - moved, run.pending + moved
    run.sent_before, run.failed_before = run.sent, run.failed
    run.changed_by, run.finished_at, run.canceled_at = by, None, None
    go_on(run)
    return run


@transaction.atomic
def archive(run: Run, *, by: User | None = None) -> Run:
    """Put a settled run out of sight."""
    run = locked(run, by)
    if run.status not in SETTLED_RUN:
        raise WrongStateError(f"Run {run.pk} is {run.status}: wait for its end, or cancel it first.")
    run.archived_at = run.archived_at or timezone.now()
    run.save()
    return run
