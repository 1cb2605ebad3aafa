"""Returns a fingerprint of what is approved: the definition of what leaves, without who has a tag on the day."""

import hashlib
import json
from typing import Any

from django.db import connection

from reminders.by_hand.content import FIELDS
from reminders.headcount import account_ids
from reminders.models import Reminder

LATER = ("second_message_hours", "follow_up_max_attempts", "follow_up_cooldown_hours")
STEPS = ("position", "after_hours", "text", "other_wordings", "urgency")

# Sums of hashes, so that the order does not matter and a million rows need no memory.
CHOSEN = """
SELECT count(*), COALESCE(bit_xor(hashint8extended(recipient_id, 1)), 0)::text,
       COALESCE(sum(hashint8(recipient_id)::bigint), 0)::text
FROM reminders_reminder_recipients WHERE reminder_id = %s
"""


def content_of(reminder: Reminder) -> str:
    """Return the fingerprint of texts, follow-ups, chosen recipients, tags, accounts and times."""
    parts = reminder.parts.order_by("role", "position")
    said: list[Any] = [
        [_text(getattr(reminder, name)) for name in (*FIELDS, *LATER)],
        list(parts.values_list("role", "kind", "text", "other_wordings", "media__sha256")),
        list(reminder.follow_up_steps.order_by("position", "pk").values_list(*STEPS)),
        account_ids(reminder),
        sorted(reminder.tags.values_list("pk", flat=True)),
        _chosen(reminder),
    ]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:32]


def _text(value: Any) -> str:
    """Return a value as text; a time as the moment that it is, whoever read it."""
    return str(value.timestamp()) if hasattr(value, "timestamp") else str(value)


def _chosen(reminder: Reminder) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(CHOSEN, [reminder.pk])
        return list(cursor.fetchone() or ())
