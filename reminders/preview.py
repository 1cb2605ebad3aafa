"""A message as one real recipient would read it, with missing values marked."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from accounts.models import Recipient
from accounts.models.account import Channel
from delivery.parts import values_of, variables
from delivery.wordings import LETTERS, VARIABLE, cut, longest
from reminders.audience import some_of
from reminders.message import MOST_CHARACTERS, TypedPart
from reminders.models import Media, Reminder

OFFERED = 20  # recipients to look through
FILE_NAMES = {"image": "image", "video": "video", "audio": "audio"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A piece of text: as written, filled in, missing, or a choice between `options`."""

    text: str = ""
    filled: bool = False
    missing: bool = False
    options: Sequence[Sequence["Piece"]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Bubble:
    """One message on the recipient's screen."""

    pieces: Sequence[Piece]
    media: Media | None = None
    letter: str = ""  # of several wordings

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
    longest: int  # characters of the longest wording, for this recipient
    too_long: str  # a sentence if the service may not take it


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
    length = max((_length(text, values) for part in (*first, *second) for text in part.wordings), default=0)
    return Preview(
        recipient=recipient,
        others=others,
        subject=pieces(reminder.subject, values),
        bubbles=[bubble for part in first for bubble in bubbles_of(part, values)],
        answers=[bubble for part in second for bubble in bubbles_of(part, values)],
        known=sorted(name for name, value in values.items() if value not in (None, "")),
        missing=sorted(name for name in used if values.get(name) in (None, "")),
        longest=length,
        too_long=_too_long(reminder, length),
    )


SAMPLE: Mapping[Channel, Mapping[str, object]] = {
    Channel.WHATSAPP: {"name": "Garden club", "address": "+60 12 345 6789"},
    Channel.EMAIL: {"name": "Maria Lim", "address": "maria@example.com"},
    Channel.LINKEDIN: {"name": "Maria Lim", "address": "maria-lim"},
    Channel.MATRIX: {"name": "Garden club", "address": "!garden:example.org"},
}


def variables_of(reminder: Reminder, parts: Iterable[TypedPart]) -> list[str]:
    texts = [text for part in parts for text in part.wordings]
    return sorted(set().union(variables(reminder.subject), *(map(variables, texts))))


def bubbles_of(part: TypedPart, values: Mapping[str, object]) -> list[Bubble]:
    """Return a bubble for each wording of a part."""
    letters = LETTERS if len(part.wordings) > 1 else " "
    return [
        Bubble(pieces=all_pieces(text, values), media=part.media, letter=letter.strip())
        for letter, text in zip(letters, part.wordings, strict=False)
    ]


def all_pieces(text: str, values: Mapping[str, object]) -> list[Piece]:
    """Return the pieces of a wording: its text, with every option of each choice."""
    found: list[Piece] = []
    for piece in cut(text):
        if isinstance(piece, str):
            found += pieces(piece, values)
        else:
            found.append(Piece(options=[pieces(option, values) for option in piece.options]))
    return found


def _length(text: str, values: Mapping[str, object]) -> int:
    return sum(len(piece.text) for piece in pieces(longest(text), values))


def _too_long(reminder: Reminder, length: int) -> str:
    most = MOST_CHARACTERS.get((reminder.channel, reminder.action))
    if most is None or length <= most:
        return ""
    return (
        f"The longest wording has {length:,} characters for this recipient. "
        f"{reminder.get_channel_display()} may take only {most:,}: shorten it."
    )


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
