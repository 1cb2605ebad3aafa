"""What people decide about a message that may or may not have arrived (SPEC R7)."""

from django.db import transaction
from django.utils import timezone

from accounts.models import Account, User
from delivery.lifecycle.ending import finish
from delivery.lifecycle.going import go_on, serve
from delivery.lifecycle.holding import refuse
from delivery.lifecycle.locking import WrongStateError, locked
from delivery.models import Run, RunTarget
from delivery.states import SETTLED_RUN, TargetStatus


@transaction.atomic
def confirm(target: RunTarget, *, by: User | None = None) -> Run:
    """A person saw that an unconfirmed message did arrive; parts that come after it still go out."""
    run, target = locked_unconfirmed(target, by)
    if target.parts_done + 1 < len(run.parts):
        return _send_on(run, target, by, parts_done=target.parts_done + 1)
    target.status, target.error, target.settled_at = TargetStatus.SENT, "", timezone.now()
    target.save(update_fields=["status", "error", "settled_at"])
    run.unconfirmed, run.sent = run.unconfirmed - 1, run.sent + 1
    run.changed_by = by
    run.save()
    if run.status in SETTLED_RUN:
        run.summary = ""
        finish(run)
    return run


@transaction.atomic
def resend(target: RunTarget, *, by: User | None = None) -> Run:
    """A person saw that an unconfirmed message did not arrive, and wants it sent."""
    run, target = locked_unconfirmed(target, by)
    return _send_on(run, target, by, parts_done=target.parts_done)


def _send_on(run: Run, target: RunTarget, by: User | None, *, parts_done: int) -> Run:
    """Queue an unconfirmed target again, from its next part on."""
    if target.account.status != Account.Status.ACTIVE:
        refuse(run, [target.account])
    target.status, target.error, target.settled_at, target.attempts = TargetStatus.PENDING, "", None, 0
    target.not_before, target.parts_done = timezone.now(), parts_done
    target.save(update_fields=["status", "error", "settled_at", "attempts", "not_before", "parts_done"])
    run.unconfirmed, run.pending = run.unconfirmed - 1, run.pending + 1
    run.changed_by, run.canceled_at = by, None
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
