"""Moves of a run that a person makes."""

from django.db import transaction
from django.utils import timezone

from accounts.models import Account, User
from audit.record import record
from delivery.lifecycle import events
from delivery.lifecycle.causes import Cause, of_cause
from delivery.lifecycle.day_caps import ready_at
from delivery.lifecycle.steps import (
    WrongStateError,
    finish,
    go_on,
    hold,
    locked,
    refuse,
    release_claims,
    require,
    serve,
    settle_if_done,
    stopped_accounts,
)
from delivery.models import Run, RunTarget
from delivery.states import SETTLED_RUN, PauseReason, RunStatus, TargetStatus

NOT_RETURNED = {"returned_at": None, "return_kind": "", "return_reason": ""}


@transaction.atomic
def pause(run: Run, *, reason: PauseReason, by: User | None = None, detail: str = "") -> Run:
    """Pause a run: after the commit nothing more leaves, except messages that are already under way.

    A run that would continue by itself, when its window opens or its account is back, then waits for a person.
    """
    run = locked(run, by)
    require(
        run,
        RunStatus.PAUSED,
        "Only a run that is queued or running, or continues by itself, can be paused.",
        different=not run.goes_on_by_itself,
    )
    run.changed_by = by
    hold(run, reason, detail)
    return run


@transaction.atomic
def resume(run: Run, *, by: User | None = None) -> Run:
    """Continue with the pending targets, now or when the window opens next."""
    run = locked(run, by)
    if run.status != RunStatus.PAUSED:
        raise WrongStateError(f"Run {run.pk} is {run.status}: only a paused run can be resumed.")
    if run.canceled_at is not None:
        raise WrongStateError(
            f"Run {run.pk} was canceled and is about to end: fire its reminder again instead."
        )
    refuse(run, stopped_accounts(run, TargetStatus.PENDING))
    run.changed_by = by
    _count_errors_anew(run)
    go_on(run, ready_at=ready_at(run))
    return run


@transaction.atomic
def cancel(run: Run, *, by: User | None = None) -> Run:
    """Skip the pending targets: the first at once, the others by the tick. After the commit nothing more leaves.

    Messages that are under way still arrive, and then the run settles.
    """
    run = locked(run, by)
    if run.status in SETTLED_RUN:
        raise WrongStateError(f"Run {run.pk} is {run.status} already: there is nothing left to cancel.")
    if run.canceled_at is not None:
        raise WrongStateError(f"Run {run.pk} was canceled already: nothing more of it is sent.")
    release_claims(run)
    run.canceled_at, run.canceled_by = timezone.now(), str(by or "")
    run.changed_by = by
    if run.status != RunStatus.PAUSED:
        run.status, run.pause_reason = RunStatus.PAUSED, PauseReason.OPERATOR
    run.opens_at = None
    run.save()
    settle_if_done(run)
    return run


@transaction.atomic
def change_hours(run: Run, *, start_hour: int, end_hour: int, by: User | None = None) -> Run:
    """Change the delivery hours of an open run that is not sending. If they had paused it, it continues in them."""
    run = locked(run, by)
    if run.status not in {RunStatus.PAUSED, RunStatus.QUEUED} or run.canceled_at or run.may_be_undone:
        raise WrongStateError(f"Run {run.pk} is {run.shown_status}: pause it first to change its hours.")
    if not 0 <= start_hour < end_hour <= 24:
        raise WrongStateError("Delivery hours must start before they end, on one day, from 0 to 24.")
    before = {"start_hour": run.window_start_hour, "end_hour": run.window_end_hour}
    run.window_start_hour, run.window_end_hour, run.changed_by = start_hour, end_hour, by
    record("run.hours", run, by=by, before=before, after={"start_hour": start_hour, "end_hour": end_hour})
    by_the_hours = run.pause_reason == PauseReason.WINDOW_CLOSED
    waits = run.status == RunStatus.QUEUED and run.opens_at is not None
    if by_the_hours:
        refuse(run, stopped_accounts(run, TargetStatus.PENDING))
    if by_the_hours or waits:
        go_on(run, ready_at=ready_at(run))
    else:
        run.save()
    return run


@transaction.atomic
def change_window(
    run: Run,
    *,
    zone: str,
    window_start_hour: int,
    window_end_hour: int,
    send_days: int,
    by: User | None = None,
) -> Run:
    """Change the delivery hours and days of an open run of a queue, also while it sends."""
    run = locked(run, by)
    if run.status in SETTLED_RUN or run.canceled_at is not None:
        return run
    run.zone, run.window_start_hour, run.window_end_hour = zone, window_start_hour, window_end_hour
    run.send_days, run.changed_by = send_days, by
    waits = run.status == RunStatus.QUEUED and run.opens_at is not None
    if run.status == RunStatus.RUNNING or waits or run.pause_reason == PauseReason.WINDOW_CLOSED:
        release_claims(run)
        go_on(run, ready_at=ready_at(run))
    else:
        run.save()
    return run


@transaction.atomic
def undo(run: Run, *, by: User | None = None) -> Run:
    """Cancel a run that was sent by hand, before anything of it has left. A run that has begun is refused."""
    run = locked(run, by)
    if not run.may_be_undone:
        raise WrongStateError(
            f"Run {run.pk} is {run.shown_status}: it is too late to undo it. Cancel the run to stop the rest."
            if run.status not in SETTLED_RUN
            else f"Run {run.pk} is {run.shown_status}: there is nothing left to undo."
        )
    return cancel(run, by=by)


@transaction.atomic
def retry_failed(run: Run, *, by: User | None = None, cause: Cause | None = None) -> Run:
    """Queue the failed targets of a settled run again, and no others; with a cause, only those that failed for it."""
    run = locked(run, by)
    if run.status not in {RunStatus.PARTIAL, RunStatus.FAILED}:
        raise WrongStateError(
            f"Run {run.pk} is {run.status}: only a run that ended partial or failed can be retried."
        )
    if run.details_removed_at is not None:
        raise WrongStateError(
            f"Run {run.pk} ended long ago, and its details were removed: fire its reminder again."
        )
    if run.failed == 0:
        raise WrongStateError(f"Run {run.pk} has no failed targets: there is nothing to retry.")
    stopped = stopped_accounts(run, TargetStatus.FAILED)
    refuse(run, [account for account in stopped if cause is None or account.pk == cause.account_id])
    failed = of_cause(RunTarget.objects.filter(run=run, status=TargetStatus.FAILED), cause)
    failed.filter(parts_done=0, returned_at__isnull=False).update(**NOT_RETURNED)
    moved = failed.update(
        status=TargetStatus.PENDING, attempts=0, not_before=timezone.now(), settled_at=None, error=""
    )
    if not moved:
        raise WrongStateError(f"No message of run {run.pk} that failed for this reason is left to retry.")
    run.failed, run.pending = run.failed - moved, run.pending + moved
    _count_errors_anew(run)
    run.changed_by, run.finished_at, run.canceled_at, run.canceled_by = by, None, None, ""
    go_on(run)
    return run


def _count_errors_anew(run: Run) -> None:
    """Restart the breaker's count: a person has seen what went wrong before."""
    run.sent_before, run.failed_before, run.unconfirmed_before = run.sent, run.failed, run.unconfirmed
    run.returned_before = run.returned


@transaction.atomic
def archive(run: Run, *, by: User | None = None) -> Run:
    """Hide a settled run from the lists."""
    run = locked(run, by)
    if run.status not in SETTLED_RUN:
        raise WrongStateError(f"Run {run.pk} is {run.status}: wait for its end, or cancel it first.")
    run.archived_at = run.archived_at or timezone.now()
    run.save()
    return run


@transaction.atomic
def unarchive(run: Run, *, by: User | None = None) -> Run:
    """Show an archived run in the lists again."""
    run = locked(run, by)
    if run.archived_at is None:
        raise WrongStateError(f"Run {run.pk} is not archived.")
    run.archived_at = None
    run.save()
    return run


@transaction.atomic
def confirm(target: RunTarget, *, by: User | None = None) -> Run:
    """Mark an unconfirmed message as sent, since a person saw that it arrived; its later parts still go out."""
    run, target = locked_unconfirmed(target, by)
    if target.parts_done + 1 < len(run.parts):
        return _send_on(run, target, by, parts_done=target.parts_done + 1)
    target.status, target.error, target.settled_at = TargetStatus.SENT, "", timezone.now()
    target.save(update_fields=["status", "error", "settled_at"])
    run.unconfirmed, run.sent = run.unconfirmed - 1, run.sent + 1
    run.returned += target.returned_at is not None
    run.changed_by = by
    run.save()
    events.results_changed(RunTarget.objects.filter(pk=target.pk))
    if run.status in SETTLED_RUN:
        run.summary = ""
        finish(run)
    return run


@transaction.atomic
def resend(target: RunTarget, *, by: User | None = None) -> Run:
    """Send an unconfirmed message again, since a person saw that it did not arrive."""
    run, target = locked_unconfirmed(target, by)
    return _send_on(run, target, by, parts_done=target.parts_done)


def _send_on(run: Run, target: RunTarget, by: User | None, *, parts_done: int) -> Run:
    """Queue an unconfirmed target again, from its next part on."""
    if run.canceled_at is not None and run.pending:
        raise WrongStateError(
            f"Run {run.pk} was canceled, and {run.pending:,} of its messages are being taken back. "
            "Decide about this one when that is done."
        )
    if target.account.status != Account.Status.ACTIVE:
        refuse(run, [target.account])
    target.status, target.error, target.settled_at, target.attempts = TargetStatus.PENDING, "", None, 0
    target.not_before, target.parts_done = timezone.now(), parts_done
    if parts_done == 0:  # nothing of it arrived, and all of it is sent again
        target.returned_at, target.return_kind, target.return_reason = None, "", ""
    target.save(
        update_fields=["status", "error", "settled_at", "attempts", "not_before", "parts_done", *NOT_RETURNED]
    )
    run.unconfirmed, run.pending = run.unconfirmed - 1, run.pending + 1
    run.changed_by, run.canceled_at, run.canceled_by = by, None, ""
    if run.status in SETTLED_RUN:
        run.finished_at = None
        go_on(run)
    else:
        run.save()
        serve([run])
    return run


def locked_unconfirmed(target: RunTarget, by: User | None) -> tuple[Run, RunTarget]:
    run = locked(target.run, by)
    target = RunTarget.objects.select_for_update().get(pk=target.pk)
    if target.status != TargetStatus.UNCONFIRMED:
        raise WrongStateError(f"This message is {target.status}: only an unconfirmed one needs a decision.")
    return run, target
