"""Writes the message of a reminder."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import transaction

from accounts.models import User
from accounts.models.account import Action, Channel
from audit.record import differing, record, stored
from delivery.wordings import MOST_WORDINGS, VARIABLE, as_plain, longest, why_not
from reminders.drafts import NotPossibleError, locked_to_edit
from reminders.models import Media, Part, Reminder

MOST_PARTS = 10

# The longest text that a service surely takes. LinkedIn allows 300 characters in an invitation, 200 without Premium.
MOST_CHARACTERS: Mapping[tuple[str, str], int] = {
    (Channel.WHATSAPP, Action.MESSAGE): 4_096,
    (Channel.LINKEDIN, Action.MESSAGE): 8_000,
    (Channel.LINKEDIN, Action.INMAIL): 1_900,
    (Channel.LINKEDIN, Action.CONNECTION_REQUEST): 200,
}
# No account of the service takes more.
REFUSED_ABOVE: Mapping[tuple[str, str], int] = {
    (Channel.LINKEDIN, Action.CONNECTION_REQUEST): 300,
    (Channel.LINKEDIN, Action.INMAIL): 1_900,
}


DRAFTS_QUIET = timedelta(minutes=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedPart:
    """One message as typed: a text with its other wordings, or a file with its caption.

    Without a list of `others`, braces in the text are no choices.
    """

    text: str
    media: Media | None = None
    others: tuple[str, ...] | None = ()

    @property
    def wordings(self) -> tuple[str, ...]:
        """Return every wording as it is written, with choices in braces."""
        return (as_plain(self.text),) if self.others is None else (self.text, *self.others)


def wordings_of(part: Part) -> tuple[str, ...]:
    """Return every wording of a saved part as it is written, without reading its file."""
    others = None if part.other_wordings is None else tuple(part.other_wordings)
    return TypedPart(text=part.text, others=others).wordings


def typed_of(part: Part) -> TypedPart:
    """Return a saved part as it would be typed."""
    others = None if part.other_wordings is None else tuple(part.other_wordings)
    return TypedPart(text=part.text, media=part.media, others=others)


@transaction.atomic
def write(reminder: Reminder, parts: Mapping[str, Sequence[TypedPart]], *, by: User) -> None:
    """Save the fields of `reminder`, and its parts by role.

    A draft may be saved half done; a scheduled reminder must stay complete, since it may fire at any moment.
    """
    draft = locked_to_edit(reminder, by=by).status == Reminder.Status.DRAFT
    if not draft and not parts[Part.Role.FIRST]:
        raise NotPossibleError(
            "A reminder that is not a draft any more needs a message. Write at least one part."
        )
    before = _told(reminder)
    for role, typed in parts.items():
        if len(typed) > MOST_PARTS:
            raise NotPossibleError(f"A message has at most {MOST_PARTS} parts, since each is sent by itself.")
        trouble = wording_trouble(typed) or length_trouble(typed, reminder)
        if not draft and trouble:
            raise NotPossibleError(trouble)
        _replace(reminder, role, typed)
    reminder.save(update_fields=["name", "subject", "updated_at"])
    old, new = differing(before, _told(reminder))
    if new:
        record("reminder.changed", reminder, by=by, before=old, after=new, quiet=quiet_for(reminder))


def _told(reminder: Reminder) -> dict[str, Any]:
    """Return the message as the database has it, to record it."""
    texts = [
        [part.text, *(part.other_wordings or ())] for part in reminder.parts.order_by("role", "position")
    ]
    files = list(reminder.parts.exclude(media=None).values_list("media__filename", flat=True))
    return stored(reminder, ("name", "subject")) | {"texts": texts, "files": files}


def quiet_for(reminder: Reminder) -> timedelta | None:
    """Return for how long further changes of a reminder are not recorded: a draft saves itself while it is typed.

    What was scheduled in the end is recorded whole (`scheduling.schedule`).
    """
    return DRAFTS_QUIET if reminder.status == Reminder.Status.DRAFT else None


def wording_trouble(parts: Iterable[TypedPart]) -> str:
    """Return what keeps the wordings of a message from being sent; empty if nothing does."""
    for part in parts:
        if len(part.wordings) > MOST_WORDINGS:
            return f"A text has at most {MOST_WORDINGS} wordings. Remove some."
        if trouble := next(filter(None, map(why_not, part.wordings)), ""):
            return trouble
    return ""


def length_trouble(parts: Iterable[TypedPart], reminder: Reminder) -> str:
    """Return which text is too long for its channel, whatever its variables are filled with; empty if none is."""
    most = REFUSED_ABOVE.get((reminder.channel, reminder.action))
    for number, part in enumerate(parts, 1):
        length = max((len(VARIABLE.sub("", longest(text))) for text in part.wordings), default=0)
        if most is not None and length > most:
            return (
                f"Text {number} has {length:,} characters. {reminder.get_channel_display()} takes at most {most:,}: "
                "shorten it, or split it into two parts."
            )
    return ""


def _listed(others: tuple[str, ...] | None) -> list[str] | None:
    return None if others is None else list(others)


def _replace(reminder: Reminder, role: str, typed: Sequence[TypedPart]) -> None:
    """Replace the parts of a role, only if they changed: most saves of a page that saves by itself change nothing."""
    saved = reminder.parts.filter(role=role).order_by("position")
    wanted = [(part.text, _listed(part.others), part.media.pk if part.media else None) for part in typed]
    if list(saved.values_list("text", "other_wordings", "media_id")) == wanted:
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
                other_wordings=_listed(part.others),
                media=part.media,
            )
            for position, part in enumerate(typed)
        ]
    )
