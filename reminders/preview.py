"""A message as one real recipient would read it, with missing values marked."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from accounts.models import Recipient
from accounts.models.account import Channel
from delivery.parts import VARIABLE, values_of, variables
from reminders.audience import some_of
from reminders.message import TypedPart
from reminders.models import Media, Reminder

OFFERED = 20  # recipients to look through
FILE_NAMES = {"image": "image", "video": "video", "audio": "audio"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A piece of text: as written, filled in, or missing."""

    text: str
    filled: bool = False
    missing: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Bubble:
    """One message on the recipient's screen."""

    pieces: Sequence[Piece]
    media: Media | None = None

    @property
    def shows(self) -> str:
        """Return how the file is shown: image, video, audio, or by its name as a file."""
        kind = self.media.content_type.partition("/")[0] if self.media else ""
        return FILE_NAMES.get(kind, "file")


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """The bubbles for one recipient, and other recipients to choose from."""

    recipient: Recipient | None
    others: Sequence[Recipient]
    subject: Sequence[Piece]
    bubbles: Sequence[Bubble]
    answers: Sequence[Bubble]  # the second message
    known: Sequence[str]  # variables that this recipient has a value for
    missing: Sequence[str]


def preview(
    reminder: Reminder,
    first: Iterable[TypedPart],
    second: Iterable[TypedPart] = (),
    *,
    recipient_id: str = "",
) -> Preview:
    first, second = list(first), list(second)
    others = _candidates(reminder)
    recipient = _recipient(reminder, recipient_id) or (others[0] if others else None)
    values = values_of(recipient) if recipient else SAMPLE[Channel(reminder.channel)]
    used = variables_of(reminder, [*first, *second])
    return Preview(
        recipient=recipient,
        others=others,
        subject=pieces(reminder.subject, values),
        bubbles=[Bubble(pieces=pieces(part.text, values), media=part.media) for part in first],
        answers=[Bubble(pieces=pieces(part.text, values), media=part.media) for part in second],
        known=sorted(name for name, value in values.items() if value not in (None, "")),
        missing=sorted(name for name in used if values.get(name) in (None, "")),
    )


SAMPLE: Mapping[Channel, Mapping[str, object]] = {
    Channel.WHATSAPP: {"name": "Garden club", "address": "+60 12 345 6789"},
    Channel.EMAIL: {"name": "Maria Lim", "address": "maria@example.com"},
    Channel.LINKEDIN: {"name": "Maria Lim", "address": "maria-lim"},
    Channel.MATRIX: {"name": "Garden club", "address": "!garden:example.org"},
}


def variables_of(reminder: Reminder, parts: Iterable[TypedPart]) -> list[str]:
    return sorted(set().union(variables(reminder.subject), *(variables(part.text) for part in parts)))


def pieces(text: str, values: Mapping[str, object]) -> list[Piece]:
    """Return the text split at its variables, each filled or marked as missing."""
    cut: list[Piece] = []
    end = 0
    for match in VARIABLE.finditer(text):
        cut.append(Piece(text=text[end : match.start()]))
        value = values.get(match[1])
        missing = value in (None, "")
        cut.append(Piece(text=match[0] if missing else str(value), filled=not missing, missing=missing))
        end = match.end()
    cut.append(Piece(text=text[end:]))
    return [piece for piece in cut if piece.text]


def _candidates(reminder: Reminder) -> list[Recipient]:
    """Return recipients who would get it; while nobody is chosen, any recipients on the channel."""
    anybody = Recipient.objects.filter(owner=reminder.owner_id, channel=reminder.channel).reachable()
    return some_of(reminder, OFFERED) or list(anybody.order_by("name", "id")[:OFFERED])


def _recipient(reminder: Reminder, pk: str) -> Recipient | None:
    if not (pk.isascii() and pk.isdigit() and len(pk) < 19):
        return None
    return Recipient.objects.filter(owner=reminder.owner_id, pk=int(pk)).first()
