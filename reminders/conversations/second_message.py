"""The second message: sent once, at once, to a recipient who replies within a day of the first one (SPEC C3).

A second message is a run of its own with one target and the highest priority, so that it goes ahead of all other
work of the account, inside its limits. The run keeps the window of the first run: a recipient who replies at night
gets the second message when the window opens. The database refuses another one for the same first message.
"""

from dataclasses import replace
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Q

from accounts.models import Recipient
from activity import counters
from delivery.fanout import Firing, make_run
from delivery.models import Run, RunTarget
from delivery.parts import FrozenPart
from delivery.states import TargetStatus
from reminders.approvals.asking import held_conversations
from reminders.conversations.answered import answered_by
from reminders.fire import continue_conversation, frozen
from reminders.models import Part, Reminder

AHEAD_OF_ALL = 32_767
# One part is being sent; or one part was sent, and the next one follows in a moment or when a window opens.
LEAVING = Q(status=TargetStatus.SENDING, begun_at__isnull=False) | Q(
    status__in=[TargetStatus.SENDING, TargetStatus.PENDING], parts_done__gt=0
)


def on_its_way(recipient: Recipient) -> RunTarget | None:
    """Return a first message that has begun to leave and not landed: the reply to it must wait until it has."""
    leaving = RunTarget.objects.filter(
        LEAVING,
        recipient=recipient,
        run__kind=Run.Kind.REMINDER,
        run__reminder__parts__role=Part.Role.SECOND,
    )
    return leaving.order_by("-status").first()


def answer(recipient: Recipient, *, said_at: datetime) -> Run | None:
    """Send the second message if it is due. The caller holds the recipient's lock."""
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
    """Return whether they wrote soon enough after the whole first message had landed. They wrote after it left."""
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
        (recipient.undeliverable_at, "undeliverable"),
        (first.returned_at, "the first one was returned"),
        (held_conversations([reminder.pk]), "changed without approval"),
        (recipient.archived_at, "no longer reachable"),
    )
    return next((why for holds, why in reasons if holds), "")


def _firing(first: RunTarget, parts: list[FrozenPart]) -> Firing:
    firing = continue_conversation(first.run, Run.Kind.SECOND, parts, [first])
    return replace(firing, priority=AHEAD_OF_ALL, first_target_id=first.pk)
