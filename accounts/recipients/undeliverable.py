"""Marks addresses at which nothing arrives, and lifts the mark again (SPEC L4).

A report of a service sets the mark, with its reason and source. A person lifts it, or a message from that person does:
someone who writes can be written to. The engine reads the mark right before each message, as it reads an opt-out.
"""

from django.db import transaction
from django.utils import timezone

from accounts.models import ConsentChange, Recipient, Role, User
from accounts.roles import require_touch
from activity import counters
from audit.record import record

Move = ConsentChange.Move
NO_REASON = "the service gave no reason"
WROTE = "wrote to us"


def mark(recipient_id: int, *, reason: str, source: str) -> bool:
    """Send nothing more to the address; return whether that is new. A later report keeps the first reason."""
    reason, source = " ".join(reason.split())[:255] or NO_REASON, source[:100]
    now = timezone.now()
    with transaction.atomic():
        unmarked = Recipient.objects.filter(pk=recipient_id, undeliverable_at=None)
        changed = unmarked.update(undeliverable_at=now, undeliverable_for=reason, undeliverable_source=source)
        if changed:
            how = f"{reason} ({source})"[:200]
            ConsentChange.objects.create(recipient_id=recipient_id, move=Move.DEAD, at=now, how=how)
    if changed:
        counters.tell("consent_changes", reason=Move.DEAD.value, recipient=recipient_id, by=None)
    return bool(changed)


def lift(recipient: Recipient, *, how: str, by: User | None = None) -> bool:
    """Send to the address again; return whether it was marked. `how` is the reason, `by` the person who decided."""
    how = " ".join(how.split())[:200]
    if not how:
        raise ValueError("Lifting the mark needs a reason.")
    if by is not None:
        require_touch(recipient, by, Role.SEND)
    with transaction.atomic():
        marked = Recipient.objects.filter(pk=recipient.pk, undeliverable_at__isnull=False)
        changed = marked.update(undeliverable_at=None, undeliverable_for="", undeliverable_source="")
        if changed:
            at = timezone.now()
            ConsentChange.objects.create(recipient=recipient, move=Move.ALIVE, at=at, how=how, by=by)
            record("recipient.deliverable", recipient, by=by, note=how)
    recipient.undeliverable_at, recipient.undeliverable_for, recipient.undeliverable_source = None, "", ""
    if changed:
        counters.tell("consent_changes", reason=Move.ALIVE.value, recipient=recipient.pk, by=by and by.pk)
    return bool(changed)
