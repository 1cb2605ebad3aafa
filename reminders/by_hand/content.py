"""Returns a fingerprint of everything that would leave, so that a confirmation holds for what was looked at."""

import hashlib
import json
from typing import Any

from accounts.models import Role, User
from accounts.roles import require_touch
from delivery import audience
from reminders.headcount import account_ids, follow_ups_of
from reminders.models import Reminder

FIELDS = (
    *("name", "subject", "channel", "action", "schedule", "fire_at", "cron", "zone", "send_days"),
    *("window_start_hour", "window_end_hour", "drip", "drip_gap_min", "drip_gap_max", "priority"),
    *("on_close", "on_overlap", "on_paused"),
)


class ChangedError(Exception):
    """Raised when a reminder is not what a person looked at any more; the text says what to do."""


def content_of(reminder: Reminder) -> str:
    """Return a fingerprint of the message, of everybody who gets it, of the accounts and of the times."""
    accounts = account_ids(reminder)
    parts = reminder.parts.order_by("role", "position")
    said: list[Any] = [
        [str(getattr(reminder, name)) for name in FIELDS],
        list(parts.values_list("role", "kind", "text", "other_wordings", "media__sha256")),
        follow_ups_of(reminder),
        accounts,
        audience.fingerprint(reminder.pk, accounts),
    ]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:32]


def require_content(reminder: Reminder, content: str, *, by: User) -> None:
    """Raise ChangedError where this is not the fingerprint of the reminder; lock it until the transaction ends."""
    require_touch(reminder, by, Role.SEND)
    found = Reminder.objects.select_for_update(no_key=True).get(pk=reminder.pk)
    if content_of(found) != content:
        raise ChangedError(
            "The message, the recipients, the accounts or the times were changed since you looked. "
            "Look at it again, then decide."
        )
