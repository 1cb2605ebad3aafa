"""Takes back the follow-ups of a recipient who replied (SPEC C2)."""

from django.utils import timezone

from accounts.models import Recipient
from delivery import lifecycle
from delivery.models import Run
from delivery.states import TargetStatus
from reminders.follow_ups import queue
from reminders.follow_ups.rules import Reason
from reminders.models import FollowUp

Status = FollowUp.Status


def reply_came(recipient: Recipient) -> int:
    """Take back follow-ups that have not left; return how many. The caller holds the recipient's lock."""
    if not FollowUp.objects.filter(recipient=recipient, status__in=[Status.QUEUED, Status.SENDING]).exists():
        return 0
    removed = _remove(recipient, status=Status.QUEUED)
    if lifecycle.withdraw(recipient.pk, kind=Run.Kind.FOLLOW_UP, why="they replied"):
        removed += _remove(recipient, status=Status.SENDING, sent_as__status=TargetStatus.SKIPPED)
    queue.tell_removed({Reason.REPLIED: removed}, by="reply")
    return removed


def _remove(recipient: Recipient, **which: str) -> int:
    found = FollowUp.objects.filter(recipient=recipient, **which).values("pk")
    return FollowUp.objects.filter(pk__in=list(found.values_list("pk", flat=True))).update(
        status=Status.REMOVED, removed_reason=Reason.REPLIED, ended_at=timezone.now()
    )
