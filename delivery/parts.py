"""Reads a run's frozen copy of its reminder's parts, and renders them for a recipient."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Literal, Protocol

from delivery import wordings
from delivery.transports.base import FileAddress, MediaRef, Message
from delivery.wordings import VARIABLE


@dataclass(frozen=True, slots=True, kw_only=True)
class FrozenPart:
    """One message of the run, as it was when the run was fired. Media files are named by their content."""

    kind: Literal["text", "media"]
    text: str = ""
    wordings: tuple[str, ...] = ()  # with choices in braces; without any, the braces of `text` are plain
    sha256: str = ""
    file: str = ""
    filename: str = ""
    content_type: str = ""

    def as_json(self) -> dict[str, Any]:
        found = {name: value for name in self.__slots__ if (value := getattr(self, name))}
        return found | {"wordings": list(self.wordings)} if self.wordings else found

    def drawn(self, *, key: str, part: int) -> str:
        """Return the text for the target with this key, its variables not yet filled in."""
        return wordings.draw(self.wordings, key=key, part=part) if self.wordings else self.text

    def variant(self, *, key: str) -> int | None:
        """Return which wording the target with this key gets; None where there is only one."""
        return wordings.variant_of(len(self.wordings), key=key)


def all_wordings(written: str, others: Sequence[str] | None) -> tuple[str, ...]:
    """Return the wordings to draw from; none where `written` is the text as it stands.

    Without a list of `others` the text was written before there were choices, so its braces are plain text.
    """
    if others is None or not (others or wordings.has_choices(written)):
        return ()
    return (written, *others)


def thaw(parts: list[dict[str, Any]]) -> tuple[FrozenPart, ...]:
    return tuple(FrozenPart(**{**part, "wordings": tuple(part.get("wordings", ()))}) for part in parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnContent:
    """The content of one target, where each has its own. Without parts it says those of its run, with its values."""

    subject: str
    parts: tuple[FrozenPart, ...] | None
    values: dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageBuilder:
    """Turns parts into messages, with the run's action and subject, the files and their handles.

    `unsubscribe_url` returns the link with which the recipient of a target, at an address, opts out, where the channel
    has such links. `threads` has the ids of the e-mails that a target's e-mail continues, by target.
    """

    action: str
    subject: str
    open_file: Callable[[str], BinaryIO]
    handles: Mapping[str, str]
    unsubscribe_url: Callable[[str, int | None], str] | None = None
    threads: Mapping[int, Sequence[str]] = field(default_factory=dict)
    address_of: Callable[[FrozenPart], FileAddress | None] | None = None

    def message(
        self,
        part: FrozenPart,
        *,
        address: str,
        values: Mapping[str, object],
        key: str = "",
        number: int = 0,
        target_id: int | None = None,
        subject: str | None = None,
    ) -> Message:
        """Return the part with this number, rendered for one recipient; `key` draws its wording.

        A target with a content of its own has a `subject` of its own, too.
        """
        return Message(
            address=address,
            kind=part.kind,
            text=render(part.drawn(key=key, part=number), values),
            media=self._media(part) if part.kind == "media" else None,
            action=self.action,
            subject=render(self.subject if subject is None else subject, values),
            unsubscribe_url=self.unsubscribe_url(address, target_id) if self.unsubscribe_url else "",
            thread=tuple(self.threads.get(target_id, ())) if target_id else (),
        )

    def _media(self, part: FrozenPart) -> MediaRef:
        return MediaRef(
            sha256=part.sha256,
            filename=part.filename,
            content_type=part.content_type,
            open=lambda: self.open_file(part.file),
            handle=self.handles.get(part.sha256),
            address=self.address_of(part) if self.address_of else None,
        )


class MissingVariableError(ValueError):
    """Raised when the text names a variable for which this recipient has no value."""


class HasVariables(Protocol):
    """A recipient as a row of the database or as a claimed target: both have these columns."""

    @property
    def name(self) -> str: ...

    @property
    def address(self) -> str: ...

    @property
    def fields(self) -> Mapping[str, object]: ...


def values_of(recipient: HasVariables) -> dict[str, object]:
    """Return the variables of a recipient; a field of their own goes before the column of the same name."""
    return {"name": recipient.name, "address": recipient.address, **recipient.fields}


def variables(text: str) -> set[str]:
    """Return the names of the variables in `text`."""
    return set(VARIABLE.findall(text))


def render(text: str, values: Mapping[str, object]) -> str:
    """Return `text` with every `{{ name }}` filled from `values`; a filled-in value is not rendered again."""

    def value(match: re.Match[str]) -> str:
        name = match[1]
        if values.get(name) in (None, ""):
            raise MissingVariableError(f"No value for {{{{ {name} }}}}: fill it in for this recipient.")
        return str(values[name])

    return VARIABLE.sub(value, text)
