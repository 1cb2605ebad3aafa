"""Decisions of a person about many messages of a run at once: all of one status, or those of one cause."""

from datetime import datetime

from django.db import transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from accounts.models import Account, User
from delivery.lifecycle import events
from delivery.lifecycle.causes import Cause, of_cause
from delivery.lifecycle.people import NOT_RETURNED
from delivery.lifecycle.steps import WrongStateError, finish, go_on, locked, refuse, serve
from delivery.models import Run, RunTarget
from delivery.states import SETTLED_RUN, TargetStatus


@transaction.atomic
def confirm_all(run: Run, *, by: User | None = None, cause: Cause | None = None) -> Run:
    """Mark unconfirmed messages as sent; those with later parts are queued for them, as `people.confirm` does."""
    run = locked(run, by)
    doubtful, now = _doubtful(run, cause), timezone.now()
    last = len(run.parts) - 1
    unfinished = list(doubtful.filter(parts_done__lt=last).values_list("pk", flat=True))
    run.returned += doubtful.filter(parts_done__gte=last, returned_at__isnull=False).count()
    decided = list(doubtful.filter(parts_done__gte=last).values_list("pk", flat=True))
    whole = doubtful.filter(pk__in=decided).update(status=TargetStatus.SENT, error="", settled_at=now)
    events.results_changed(RunTarget.objects.filter(pk__in=decided))
    run.unconfirmed, run.sent, run.changed_by = run.unconfirmed - whole, run.sent + whole, by
    if unfinished:
        return _send_on(run, RunTarget.objects.filter(pk__in=unfinished), now, more=1)
    run.save()
    if run.status in SETTLED_RUN:
        run.summary = ""
        finish(run)
    return run


@transaction.atomic
def resend_all(run: Run, *, by: User | None = None, cause: Cause | None = None) -> Run:
    """Send unconfirmed messages again, since a person saw that they did not arrive."""
    run = locked(run, by)
    run.changed_by = by
    return _send_on(run, _doubtful(run, cause), timezone.now(), more=0)


def _doubtful(run: Run, cause: Cause | None) -> QuerySet[RunTarget]:
    """Return the unconfirmed targets, locked; raise WrongStateError if there are none."""
    targets = of_cause(RunTarget.objects.filter(run=run, status=TargetStatus.UNCONFIRMED), cause)
    ids = list(targets.select_for_update(of=("self",)).order_by("pk").values_list("pk", flat=True))
    if not ids:
        raise WrongStateError("No unconfirmed message is left to decide about.")
    return RunTarget.objects.filter(pk__in=ids)


def _send_on(run: Run, targets: QuerySet[RunTarget], now: datetime, *, more: int) -> Run:
    """Queue unconfirmed targets again: `more` of their parts count as done."""
    if run.canceled_at is not None and run.pending:
        raise WrongStateError(
            f"Run {run.pk} was canceled, and {run.pending:,} of its messages are being taken back. "
            "Decide about these when that is done."
        )
    senders = Account.objects.filter(pk__in=targets.order_by().values("account_id").distinct())
    refuse(run, list(senders.exclude(status=Account.Status.ACTIVE, archived_at=None)))
    if not more:  # nothing of these arrived, and all of them is sent again
        targets.filter(parts_done=0).update(**NOT_RETURNED)
    moved = targets.update(
        status=TargetStatus.PENDING,
        error="",
        settled_at=None,
        attempts=0,
        not_before=now,
        parts_done=F("parts_done") + more,
    )
    run.unconfirmed, run.pending = run.unconfirmed - moved, run.pending + moved
    run.canceled_at, run.canceled_by = None, ""
    if run.status in SETTLED_RUN:
        run.finished_at = None
        go_on(run)
    else:
        run.save()
        serve([run])
    return run
