"""Reads what a source gives for an item, and says what is wrong with it."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from accounts.models import Account, Recipient
from accounts.models.account import Action
from delivery.parts import FrozenPart, values_of, variables
from queues.models import Queue
from reminders.drafts import WITH_SUBJECT
from reminders.message import REFUSED_ABOVE
from reminders.models import Media

LONGEST = 65_536  # characters of a subject and of a text
LONGEST_ID = 200
LONGEST_NAME = 200
LONGEST_VALUE = 1_000
MOST_VALUES = 100
MOST_FILES = 5
FARTHEST_YEARS = 5


class EntryError(ValueError):
    """The entry cannot become an item. The text says why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One item as its source gives it. Without a text of its own it says that of its queue, with its values.

    `recipient_id` names a recipient; else `address` does, as written, and `name` is for one that is new.
    """

    own_id: str
    address: str = ""
    recipient_id: int | None = None
    name: str = ""
    subject: str = ""
    text: str = ""
    values: Mapping[str, str] = field(default_factory=dict)
    media: Sequence[int] = ()
    planned_at: datetime | None = None
    sender: str = ""
    priority: int = 0

    def fingerprint(self) -> str:
        """Return a short text that is the same for equal entries."""
        said: dict[str, Any] = {name: getattr(self, name) for name in SAID}
        said["values"], said["media"] = dict(self.values), list(self.media)
        if self.planned_at is not None:
            said["planned_at"] = self.planned_at.astimezone(UTC).isoformat()
        return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


# Not `asdict`, which copies each value and takes most of the time of a large import.
SAID = tuple(Entry.__dataclass_fields__)


def check(entry: Entry, queue: Queue, media: Mapping[int, Media]) -> None:
    """Raise EntryError unless the entry could be an item of the queue, whoever it is for."""
    if not entry.own_id.strip() or len(entry.own_id) > LONGEST_ID:
        raise EntryError(f"The own id needs 1 to {LONGEST_ID} characters.")
    if entry.priority not in {-1, 0, 1}:
        raise EntryError("The priority is low, normal or high.")
    _check_times(entry)
    _check_content(entry, queue)
    _check_values(entry)
    if strange := set(entry.media) - set(media):
        raise EntryError(f"There is no file {min(strange)}. Upload it first.")


def _check_times(entry: Entry) -> None:
    if entry.planned_at is None:
        return
    if entry.planned_at.tzinfo is None:
        raise EntryError("The planned time has no time zone.")
    now = datetime.now(UTC)
    if not now.year - FARTHEST_YEARS <= entry.planned_at.year <= now.year + FARTHEST_YEARS:
        raise EntryError(f"The planned time is in the year {entry.planned_at.year}. Check the date.")


def _check_content(entry: Entry, queue: Queue) -> None:
    if not (entry.text.strip() or entry.media or queue.text.strip()):
        raise EntryError("There is no text. Write one, or give the queue a text for all items.")
    if len(entry.text) > LONGEST or len(entry.subject) > LONGEST:
        raise EntryError(f"The text is too long: a subject and a text have at most {LONGEST:,} characters.")
    if "\n" in entry.subject or "\r" in entry.subject:
        raise EntryError("The subject has a line break. Write it in one line.")
    if "\0" in entry.text or "\0" in entry.subject:
        raise EntryError("The text has a character that nobody can read. Copy it again as plain text.")
    most = REFUSED_ABOVE.get((queue.channel, queue.action))
    if most is not None and len(entry.text) > most:
        raise EntryError(
            f"The text has {len(entry.text):,} characters. {queue.get_channel_display()} takes {most:,}."
        )
    if queue.action in WITH_SUBJECT and not (entry.subject or queue.subject).strip():
        raise EntryError(f"{Action(queue.action).label} needs a subject. Write one.")
    if len(entry.media) > MOST_FILES:
        raise EntryError(f"An item has at most {MOST_FILES} files, since each is sent by itself.")


def _check_values(entry: Entry) -> None:
    if len(entry.values) > MOST_VALUES:
        raise EntryError(f"An item has at most {MOST_VALUES} values.")
    for name, value in entry.values.items():
        if len(value) > LONGEST_VALUE:
            raise EntryError(
                f"The value of “{name}” is longer than {LONGEST_VALUE:,} characters. Shorten it."
            )


def uses_template(entry: Entry) -> bool:
    """Decide whether an item says the text of its queue."""
    return not entry.text.strip() and not entry.media


def parts_of(entry: Entry, media: Mapping[int, Media]) -> list[dict[str, Any]] | None:
    """Return the parts of the item; None where it says the text of its queue. Its first file has its text."""
    if uses_template(entry):
        return None
    files = [media[pk] for pk in entry.media]
    if not files:
        return [FrozenPart(kind="text", text=entry.text).as_json()]
    return [
        FrozenPart(
            kind="media",
            text="" if place else entry.text,
            sha256=file.sha256,
            file=file.file.name or "",
            filename=file.filename,
            content_type=file.content_type,
        ).as_json()
        for place, file in enumerate(files)
    ]


def check_variables(entry: Entry, queue: Queue, recipient: Recipient) -> None:
    """Raise EntryError where a text names a variable that has no value for this recipient."""
    template = uses_template(entry)
    text, subject = (queue.text if template else entry.text), entry.subject or queue.subject
    if "{{" not in text and "{{" not in subject:
        return
    known = values_of(recipient) | dict(entry.values)
    missing = [name for name in variables(text) | variables(subject) if not str(known.get(name) or "")]
    if missing:
        names = ", ".join(f"{{{{ {name} }}}}" for name in sorted(missing))
        raise EntryError(f"{recipient} has no value for {names}. Give it one, or leave it out of the text.")


REFUSALS = (
    ("opted_out_at", "opted out"),
    ("blocked_at", "blocked"),
    ("undeliverable_at", "undeliverable"),
    ("archived_at", "no longer reachable"),
)


def refusal(recipient: Recipient, account: Account) -> str:
    """Return why the recipient gets nothing, in the words of all other runs; empty if they may."""
    for name, why in REFUSALS:
        if getattr(recipient, name) is not None:
            return why
    if recipient.problem:
        return recipient.problem
    tied = recipient.account_id is not None and recipient.account_id != account.pk
    return "reached only by another account" if tied else ""


def read_time(text: str, zone: str) -> datetime | None:
    """Return the moment that a cell names, in this zone unless it names one; None where it is empty."""
    written = text.strip()
    if not written:
        return None
    try:
        found = datetime.fromisoformat(written)
    except ValueError:
        found = _parsed(written)
    return found.replace(tzinfo=ZoneInfo(zone)) if found.tzinfo is None else found


def _parsed(written: str) -> datetime:
    """Read a date as people write it: 30.11.2026 9:30, 2026/11/30, or 11/30/2026 where it cannot mean another day."""
    if found := WRITTEN.fullmatch(written):
        first, second, third = int(found["first"]), int(found["second"]), int(found["third"])
        hour, minute = int(found["hour"] or 0), int(found["minute"] or 0)
        if found["half"]:
            hour = hour % 12 + (12 if found["half"].lower() == "pm" else 0)
        for year, month, day in _orders(first, second, third, dotted="." in written[:8]):
            try:
                return datetime(year, month, day, hour, minute)  # noqa: DTZ001 - its zone is added by the caller
            except ValueError:
                continue
    raise EntryError(f"“{written[:40]}” is not a date and time. Write it like 2026-11-30 09:30.")


def _orders(first: int, second: int, third: int, *, dotted: bool) -> list[tuple[int, int, int]]:
    """Return year, month and day in every order that they may be meant in; none where two days are possible."""
    if first > 31:
        return [(first, second, third)]
    if dotted or first > 12:
        return [(third, second, first)]
    return [(third, first, second)] if second > 12 or first == second else []


WRITTEN = re.compile(
    r"(?P<first>\d{1,4})[./](?P<second>\d{1,2})[./](?P<third>\d{1,4})"
    r"(?:[ T,]+(?P<hour>\d{1,2})[:.](?P<minute>\d{2})(?::\d{2})?\s*(?P<half>[AaPp][Mm])?)?"
)


PRIORITIES = {"": 0, "normal": 0, "0": 0, "medium": 0, "low": -1, "-1": -1, "high": 1, "1": 1, "urgent": 1}


def read_priority(text: str) -> int:
    """Return the priority that a cell names; raise EntryError where it is none."""
    try:
        return PRIORITIES[text.strip().lower()]
    except KeyError:
        raise EntryError(f"“{text.strip()[:40]}” is not a priority. Write low, normal or high.") from None
