"""The queue of follow-ups: its limits, its size, its lock, and how its rows read."""

from collections import Counter
from collections.abc import Mapping
from datetime import timedelta

from django.conf import settings
from django.db import connection

from accounts.models import Recipient
from activity import counters
from reminders.follow_ups.rules import Contact, Patience, QueueLimits
from reminders.models import FollowUp, Reminder

LOCK = 0x70616365  # any number that nobody else takes


def lock() -> None:
    """One pass over the queue at a time, until this transaction ends: its size holds only for who counts alone."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])


def size() -> int:
    return FollowUp.objects.filter(status=FollowUp.Status.QUEUED).count()


def limits() -> QueueLimits:
    return QueueLimits(
        most=settings.FOLLOW_UP_MAX_QUEUE_SIZE,
        threshold=settings.FOLLOW_UP_BACKPRESSURE_THRESHOLD,
        growth=(settings.FOLLOW_UP_BACKPRESSURE_DELAY_MIN, settings.FOLLOW_UP_BACKPRESSURE_DELAY_MAX),
    )


def patience(reminder: Reminder) -> Patience:
    """The reminder's own numbers, or those of the settings."""
    hours = reminder.follow_up_cooldown_hours or settings.FOLLOW_UP_COOLDOWN_HOURS
    return Patience(
        most=min(reminder.follow_up_max_attempts or settings.FOLLOW_UP_MAX_ATTEMPTS, 3),
        cooldown=timedelta(hours=hours),
    )


def silenced(reminder: Reminder) -> bool:
    """Whether a person wants nothing more of it."""
    return reminder.archived_at is not None or reminder.status == Reminder.Status.OFF


def contact_of(recipient: Recipient) -> Contact:
    return Contact(
        attempts=recipient.attempts,
        cooldown_until=recipient.cooldown_until,
        not_interested=recipient.not_interested_at is not None,
        converted=recipient.converted_at is not None,
        opted_out=recipient.opted_out_at is not None,
        blocked=recipient.blocked_at is not None,
        archived=recipient.archived_at is not None,
    )


def tell_removed(reasons: Mapping[str, int], *, by: str) -> None:
    """`by` says who removed them: entry, hygiene, sending, landing or a reply."""
    for reason, number in reasons.items():
        counters.tell("follow_ups_removed", reason=str(reason), number=number, by=by)


def tell_events(events: Counter[tuple[str, str]]) -> None:
    """Tell what else happened, each an event with its reason."""
    for (event, reason), number in events.items():
        counters.tell(event, reason=str(reason), number=number)
