"""Opting out and in, blocking, and converting: explicit, recorded, and safe to repeat (SPEC C6).

What is decided here holds before the next message leaves, even in the middle of a run: right before each one
the engine looks at the recipient again (`begin` in `delivery/claims.py`), and skips who opted out or is blocked.
"""

from typing import Literal

from django.db import transaction
from django.utils import timezone

from accounts.models import ConsentChange, Recipient, User
from accounts.roles import require_touch
from activity import counters

Mark = Literal["opted_out_at", "blocked_at", "converted_at"]
Move = ConsentChange.Move


def opt_out(recipient: Recipient, *, how: str, by: User | None = None) -> bool:
    """Send nothing more to them. `how` says what they did or who asked; `by` is the person at the keyboard.

    True if this changed anything: a second opt-out leaves the first one's time and record alone.
    """
    return _change(recipient, "opted_out_at", Move.OUT, on=True, how=how, by=by)


def opt_in(recipient: Recipient, *, how: str, by: User | None) -> bool:
    """Write to them again. Only ever by an explicit wish, which `how` must say."""
    return _change(recipient, "opted_out_at", Move.IN, on=False, how=how, by=by)


def block(recipient: Recipient, *, how: str, by: User | None = None) -> bool:
    """Send nothing more to them, because the operator or the service does not want it."""
    return _change(recipient, "blocked_at", Move.BLOCKED, on=True, how=how, by=by)


def unblock(recipient: Recipient, *, how: str, by: User | None) -> bool:
    return _change(recipient, "blocked_at", Move.UNBLOCKED, on=False, how=how, by=by)


def convert(recipient: Recipient, *, how: str, by: User | None = None) -> bool:
    """They did what the reminders were for: no follow-ups any more. Reminders still reach them."""
    return _change(recipient, "converted_at", Move.CONVERTED, on=True, how=how, by=by)


def reopen(recipient: Recipient, *, how: str, by: User | None) -> bool:
    """They are as if they had never converted."""
    return _change(recipient, "converted_at", Move.REOPENED, on=False, how=how, by=by)


def _change(recipient: Recipient, mark: Mark, move: Move, *, on: bool, how: str, by: User | None) -> bool:
    """Set or clear the mark, once, and write down how it came about."""
    how = " ".join(how.split())[:200]
    if not how:
        raise ValueError("A change of consent needs a reason: say how it came about.")
    if by is not None:
        require_touch(recipient, by)
    now = timezone.now()
    with transaction.atomic():
        marked = Recipient.objects.filter(pk=recipient.pk, **{f"{mark}__isnull": on})
        changed = marked.update(**{mark: now if on else None}) == 1
        if changed:
            ConsentChange.objects.create(recipient=recipient, move=move, at=now, how=how, by=by)
    if changed:
        setattr(recipient, mark, now if on else None)
        counters.tell("consent_changes", reason=move.value, recipient=recipient.pk, by=by and by.pk)
    else:
        recipient.refresh_from_db(fields=[mark])
    return changed
