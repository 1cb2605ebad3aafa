"""What a run meets on its way: its last message, too many errors, a recipient who needs nothing any more."""

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from delivery import knobs
from delivery.lifecycle.ending import settle_if_done
from delivery.lifecycle.people import pause
from delivery.models import Run, RunTarget
from delivery.states import SETTLED_RUN, PauseReason, RunStatus, TargetStatus


@transaction.atomic
def trip(run_id: int) -> bool:
    """Pause a run whose error rate is too high since it was last resumed; whether it was."""
    run = Run.objects.select_for_update(no_key=True).get(pk=run_id)
    since = knobs.trips(run.sent - run.sent_before, run.failed - run.failed_before)
    if run.status == RunStatus.RUNNING and since:
        pause(run, reason=PauseReason.ERROR_RATE)
        return True
    return False


@transaction.atomic
def settle(run_id: int) -> None:
    """End a run of which nothing is left to send."""
    run = Run.objects.select_for_update(no_key=True).get(pk=run_id)
    if run.status not in SETTLED_RUN:
        settle_if_done(run)


@transaction.atomic
def withdraw(recipient_id: int, *, kind: Run.Kind, why: str) -> int:
    """Skip what is on its way to a recipient in runs of a kind and has not begun to leave; how many targets."""
    on_its_way = Q(status=TargetStatus.PENDING) | Q(status=TargetStatus.SENDING, begun_at__isnull=True)
    targets = RunTarget.objects.filter(on_its_way, recipient=recipient_id, run__kind=kind)
    runs = sorted(set(targets.values_list("run_id", flat=True)))
    return sum(_withdraw_from(run_id, targets, why) for run_id in runs)


def _withdraw_from(run_id: int, targets: QuerySet[RunTarget], why: str) -> bool:
    run = Run.objects.select_for_update(no_key=True).get(pk=run_id)
    target = targets.filter(run=run).select_for_update(of=("self",)).first()
    if target is None or run.status in SETTLED_RUN:
        return False
    was = TargetStatus(target.status)
    target.status, target.error, target.settled_at = TargetStatus.SKIPPED, why, timezone.now()
    target.claimed_at = None
    target.save(update_fields=["status", "error", "settled_at", "claimed_at"])
    setattr(run, was, getattr(run, was) - 1)
    run.skipped += 1
    run.save()
    settle_if_done(run)
    return True
