"""The queue of follow-ups: its limits, size and lock, and its log of events."""

from collections import Counter
from collections.abc import Mapping
from datetime import timedelta

from django.conf import settings
from django.db import connection
from django.db.models import Count, QuerySet

from accounts.models import Recipient
from activity import counters
from reminders.follow_ups.rules import Contact, Patience, QueueLimits
from reminders.models import FollowUp, Reminder

LOCK = 0x70616365  # any number that no other lock uses


def lock() -> None:
    """Allow one pass over the queue at a time, until this transaction ends: other passes would change its size."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])


def size() -> int:
    return FollowUp.objects.filter(status=FollowUp.Status.QUEUED).count()


def sizes(rows: QuerySet[FollowUp] | None = None) -> Counter[int]:
    """Return how many follow-ups wait, by the owner of their recipient; of `rows`, or of everybody."""
    found = FollowUp.objects.all() if rows is None else rows
    counted = found.filter(status=FollowUp.Status.QUEUED).order_by().values_list("recipient__owner")
    return Counter(dict(counted.annotate(number=Count("pk"))))


def limits() -> QueueLimits:
    """Return the limits of each owner's part of the queue: no owner's follow-ups keep out another's (SPEC K7)."""
    return QueueLimits(
        most=settings.FOLLOW_UP_MAX_QUEUE_SIZE,
        threshold=settings.FOLLOW_UP_BACKPRESSURE_THRESHOLD,
        growth=(settings.FOLLOW_UP_BACKPRESSURE_DELAY_MIN, settings.FOLLOW_UP_BACKPRESSURE_DELAY_MAX),
    )


def patience(reminder: Reminder) -> Patience:
    """Return the reminder's own numbers, or those of the settings."""
    hours = reminder.follow_up_cooldown_hours or settings.FOLLOW_UP_COOLDOWN_HOURS
    return Patience(
        most=min(reminder.follow_up_max_attempts or settings.FOLLOW_UP_MAX_ATTEMPTS, 3),
        cooldown=timedelta(hours=hours),
    )


def silenced(reminder: Reminder) -> bool:
    """Return whether a person stopped the reminder's follow-ups."""
    return reminder.archived_at is not None or reminder.status == Reminder.Status.OFF


def contact_of(recipient: Recipient) -> Contact:
    return Contact(
        attempts=recipient.attempts,
        cooldown_until=recipient.cooldown_until,
        not_interested=recipient.not_interested_at is not None,
        converted=recipient.converted_at is not None,
        opted_out=recipient.opted_out_at is not None,
        blocked=recipient.blocked_at is not None,
        undeliverable=recipient.undeliverable_at is not None,
        archived=recipient.archived_at is not None,
    )


def tell_removed(reasons: Mapping[str, int], *, by: str) -> None:
    """Log removals. `by` says what removed them: entry, hygiene, sending, landing or a reply."""
    for reason, number in reasons.items():
        counters.tell("follow_ups_removed", reason=str(reason), number=number, by=by)


def tell_events(events: Counter[tuple[str, str]]) -> None:
    """Log other events, each with its reason."""
    for (event, reason), number in events.items():
        counters.tell(event, reason=str(reason), number=number)
