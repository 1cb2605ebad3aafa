"""The second message: to whom replies within a day of the first, at once, once, and never otherwise (SPEC C3).

It is a run of its own with one target and the highest priority, so that it goes ahead of all other work of the
account, inside its limits. It keeps the window of the run that it belongs to: who replies at night gets it when
the window opens. The database refuses a second one for the same first message.
"""

from datetime import datetime, timedelta

import structlog
from django.conf import settings
from django.db.models import Q

from accounts.models import Recipient
from accounts.models.account import Action
from delivery.fanout import Firing, make_run
from delivery.models import Run, RunTarget
from delivery.parts import FrozenPart
from delivery.states import TargetStatus
from reminders.fire import frozen
from reminders.leaving import answered_by
from reminders.models import Part, Reminder

log = structlog.get_logger(__name__)

AHEAD_OF_ALL = 32_767
# One of its parts is leaving; or has left, and the next one follows in a moment, or when a window opens.
LEAVING = Q(status=TargetStatus.SENDING, begun_at__isnull=False) | Q(
    status__in=[TargetStatus.SENDING, TargetStatus.PENDING], parts_done__gt=0
)


def on_its_way(recipient: Recipient) -> RunTarget | None:
    """A first message that has begun to leave and not landed: its reply must wait until it has."""
    leaving = RunTarget.objects.filter(
        LEAVING,
        recipient=recipient,
        run__kind=Run.Kind.REMINDER,
        run__reminder__parts__role=Part.Role.SECOND,
    )
    return leaving.order_by("-status").first()


def answer(recipient: Recipient, *, said_at: datetime) -> Run | None:
    """Send it if it is due; the caller holds the recipient's lock."""
    first = answered_by(recipient, said_at, run__kind=Run.Kind.REMINDER)
    if first is None or not _in_time(first, said_at) or not _may_speak(first, recipient):
        return None
    parts = _parts(first)
    if not parts or Run.objects.filter(first_target=first).exists():
        return None
    run = make_run(_firing(first, parts))
    log.info("second_message", run=run.pk, recipient=recipient.pk, first=first.pk)
    return run


def hours(reminder: Reminder) -> float:
    return float(reminder.second_message_hours or settings.SECOND_MESSAGE_HOURS)


def _in_time(first: RunTarget, said_at: datetime) -> bool:
    """Whether they spoke soon enough after all of it had landed; they spoke after it left."""
    within = timedelta(hours=hours(first.run.reminder))
    return first.settled_at is not None and said_at <= first.settled_at + within


def _parts(first: RunTarget) -> list[FrozenPart]:
    seconds = Part.objects.filter(reminder=first.run.reminder_id, role=Part.Role.SECOND)
    return [frozen(part) for part in seconds.select_related("media").order_by("position")]


def _may_speak(first: RunTarget, recipient: Recipient) -> bool:
    reminder = first.run.reminder
    return (
        reminder.archived_at is None
        and reminder.status != Reminder.Status.OFF
        and first.account.archived_at is None
        and recipient.opted_out_at is None
        and recipient.blocked_at is None
        and recipient.archived_at is None
    )


def _firing(first: RunTarget, parts: list[FrozenPart]) -> Firing:
    run = first.run
    return Firing(
        reminder_id=run.reminder_id,
        owner_id=run.owner_id,
        name=run.name,
        action=talking(run.action),
        subject=run.subject,
        parts=parts,
        zone=run.zone,
        window_start_hour=run.window_start_hour,
        window_end_hour=run.window_end_hour,
        send_days=run.send_days,
        resumes_by_itself=True,
        priority=AHEAD_OF_ALL,
        account_ids=[first.account_id],
        kind=Run.Kind.SECOND,
        given=[(first.recipient_id, first.account_id)],
        first_target_id=first.pk,
    )


def talking(action: str) -> str:
    """Who accepted an invitation is written to by messages."""
    return Action.MESSAGE if action == Action.CONNECTION_REQUEST else action
