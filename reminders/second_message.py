"""The second message: to whom replies within a day of the first, at once, once, and never otherwise (SPEC C3).

It is a run of its own with one target and the highest priority, so that it goes ahead of all other work of the
account, inside its limits. It keeps the window of the run that it belongs to: who replies at night gets it when
the window opens. The database refuses a second one for the same first message.
"""

from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Q

from accounts.models import Recipient
from accounts.models.account import Action
from activity import counters
from delivery.fanout import Firing, make_run
from delivery.models import Run, RunTarget
from delivery.parts import FrozenPart
from delivery.states import TargetStatus
from reminders.fire import frozen
from reminders.leaving import answered_by
from reminders.models import Part, Reminder

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
    parts = _parts(first) if first else []
    if first is None or not parts:
        return None
    told = {"recipient": recipient.pk, "first": first.pk}
    if why_not := _why_not(first, recipient, said_at):
        counters.tell("second_messages", reason=why_not, **told)
        return None
    run = make_run(_firing(first, parts))
    counters.tell("second_messages", reason="planned", run=run.pk, **told)
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


def _why_not(first: RunTarget, recipient: Recipient, said_at: datetime) -> str:
    reminder = first.run.reminder
    reasons = (
        (not _in_time(first, said_at), "too late"),
        (Run.objects.filter(first_target=first).exists(), "had it already"),
        (reminder.archived_at or reminder.status == Reminder.Status.OFF, "reminder switched off"),
        (first.account.archived_at, "account archived"),
        (recipient.opted_out_at, "opted out"),
        (recipient.blocked_at, "blocked"),
        (recipient.archived_at, "no longer reachable"),
    )
    return next((why for holds, why in reasons if holds), "")


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
