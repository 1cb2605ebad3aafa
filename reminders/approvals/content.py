"""Returns a fingerprint of what is approved: the definition of what leaves, without who has a tag on the day."""

import hashlib
import json
from typing import Any

from django.db import connection

from reminders.by_hand.content import FIELDS
from reminders.headcount import account_ids
from reminders.models import Part, Reminder

HALF = 32  # characters
PARTS = ("role", "kind", "text", "other_wordings", "media__sha256")
# Follow-ups keep the hours, the subject and the accounts that their reminder has when they leave.
LATER = (
    *("second_message_hours", "follow_up_max_attempts", "follow_up_cooldown_hours", "subject", "action"),
    *("zone", "window_start_hour", "window_end_hour", "send_days"),
)
STEPS = ("position", "after_hours", "text", "other_wordings", "urgency")

# Hashes of ids in order, by ranges of ids so that a million rows need little memory. Sums of hashes would find a change
# as well, but somebody can compute another choice that has the same sums.
CHOSEN = """
SELECT string_agg(encode(known.hash, 'hex'), ',' ORDER BY known.range) FROM (
    SELECT recipient_id / 100000 AS range,
           sha256(convert_to(string_agg(recipient_id::text, ',' ORDER BY recipient_id), 'UTF8')) AS hash
    FROM reminders_reminder_recipients WHERE reminder_id = %s GROUP BY 1
) known
"""


def content_of(reminder: Reminder) -> str:
    """Return the fingerprint of texts, follow-ups, chosen recipients, tags, accounts and times.

    Its second half is that of the conversation alone.
    """
    parts = reminder.parts.order_by("role", "position")
    said: list[Any] = [
        [_text(getattr(reminder, name)) for name in FIELDS],
        list(parts.values_list(*PARTS)),
        account_ids(reminder),
        sorted(reminder.tags.values_list("pk", flat=True)),
        _chosen(reminder),
    ]
    return _hash(said) + conversation_of(reminder)


def conversation_of(reminder: Reminder) -> str:
    """Return the fingerprint of what follows the first message. It is read with each reply, so it stays cheap."""
    second = reminder.parts.filter(role=Part.Role.SECOND).order_by("position")
    said: list[Any] = [
        [_text(getattr(reminder, name)) for name in LATER],
        list(second.values_list(*PARTS)),
        list(reminder.follow_up_steps.order_by("position", "pk").values_list(*STEPS)),
        account_ids(reminder),
    ]
    return _hash(said)


def of_conversation(content: str) -> str:
    """Return the half of a fingerprint that is the conversation's."""
    return content[HALF:]


def _hash(said: list[Any]) -> str:
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:HALF]


def _text(value: Any) -> str:
    """Return a value as text; a time as the moment that it is, whoever read it."""
    return str(value.timestamp()) if hasattr(value, "timestamp") else str(value)


def _chosen(reminder: Reminder) -> list[Any]:
    """Return what stands for those who were chosen one by one."""
    with connection.cursor() as cursor:
        cursor.execute(CHOSEN, [reminder.pk])
        return list(cursor.fetchone() or ())
