"""How a run ends: what is left is skipped, and what it became is decided by its counts."""

from django.utils import timezone

from delivery import summary
from delivery.lifecycle.telling import announce_later, tell_later
from delivery.models import Run, RunAccount, RunTarget
from delivery.states import RunStatus, TargetStatus

CANCELED = "canceled by operator"


def settle_if_done(run: Run) -> None:
    """End the run if nothing is left; a canceled one skips what is."""
    if run.canceled_at is not None:
        skip_pending(run, CANCELED)
    if run.pending == 0 and run.sending == 0:
        run.summary = ""  # that of a pause is out of date
        finish(run)
    elif run.canceled_at is not None:
        run.save()
        announce_later(run)


def finish(run: Run) -> None:
    run.status, run.pause_reason = _ending(run), ""
    run.opens_at = None
    run.finished_at = run.finished_at or timezone.now()
    run.summary = run.summary or summary.finished(run)
    run.save()
    RunAccount.objects.filter(run=run).update(open=False)
    tell_later(run)


def _ending(run: Run) -> RunStatus:
    if run.sent == run.total and run.total > 0:
        return RunStatus.SUCCESS
    if run.sent or run.unconfirmed:
        return RunStatus.PARTIAL
    if run.canceled_at is None:
        return RunStatus.FAILED
    half_sent = RunTarget.objects.filter(run=run, parts_done__gt=0).exists()
    return RunStatus.PARTIAL if half_sent else RunStatus.CANCELED


def skip_pending(run: Run, why: str) -> None:
    rest = RunTarget.objects.filter(run=run, status=TargetStatus.PENDING)
    moved = rest.update(status=TargetStatus.SKIPPED, error=why, settled_at=timezone.now())
    run.pending, run.skipped = run.pending - moved, run.skipped + moved
