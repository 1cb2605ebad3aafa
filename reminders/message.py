"""Writes the message of a reminder."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db import transaction

from accounts.models import User
from accounts.roles import require_touch
from reminders.drafts import NotPossibleError
from reminders.models import Media, Part, Reminder

MOST_PARTS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedPart:
    """One message as typed: a text, or a file with its caption."""

    text: str
    media: Media | None = None


@transaction.atomic
def write(reminder: Reminder, parts: Mapping[str, Sequence[TypedPart]], *, by: User) -> None:
    """Save the fields of `reminder`, and its parts by role.

    A draft may be saved half done; a scheduled reminder must stay complete, since it may fire at any moment.
    """
    require_touch(reminder, by)
    if reminder.status != Reminder.Status.DRAFT and not parts[Part.Role.FIRST]:
        raise NotPossibleError(
            "A reminder that is not a draft any more needs a message. Write at least one part."
        )
    for role, typed in parts.items():
        if len(typed) > MOST_PARTS:
            raise NotPossibleError(f"A message has at most {MOST_PARTS} parts, since each is sent by itself.")
        _replace(reminder, role, typed)
    reminder.save(update_fields=["name", "subject", "updated_at"])


def _replace(reminder: Reminder, role: str, typed: Sequence[TypedPart]) -> None:
    """Replace the parts of a role, only if they changed: most saves of a page that saves by itself change nothing."""
    saved = reminder.parts.filter(role=role).order_by("position")
    wanted = [(part.text, part.media.pk if part.media else None) for part in typed]
    if list(saved.values_list("text", "media_id")) == wanted:
        return
    saved.delete()
    Part.objects.bulk_create(
        [
            Part(
                reminder=reminder,
                role=role,
                position=position,
                kind=Part.Kind.MEDIA if part.media else Part.Kind.TEXT,
                text=part.text,
                media=part.media,
            )
            for position, part in enumerate(typed)
        ]
    )
