"""A run's frozen copy of its reminder's parts."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, BinaryIO, Literal

from delivery.render import render
from delivery.transports.base import MediaRef, Message


@dataclass(frozen=True, slots=True, kw_only=True)
class FrozenPart:
    """One message of the run, as it was when the run was fired. Media are named by their content."""

    kind: Literal["text", "media"]
    text: str = ""
    sha256: str = ""
    file: str = ""
    filename: str = ""
    content_type: str = ""

    def as_json(self) -> dict[str, str]:
        return {name: value for name, value in asdict(self).items() if value}


def thaw(parts: list[dict[str, Any]]) -> tuple[FrozenPart, ...]:
    return tuple(FrozenPart(**part) for part in parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """What makes a part a message: how to open its file, its handle, and the run's action and subject.

    `unsubscribe_url` gives the link by which whoever has an address opts out, where the channel has such links.
    """

    action: str
    subject: str
    open_file: Callable[[str], BinaryIO]
    handles: Mapping[str, str]
    unsubscribe_url: Callable[[str], str] | None = None

    def message(self, part: FrozenPart, *, address: str, values: Mapping[str, object]) -> Message:
        """The part, rendered for one recipient."""
        return Message(
            address=address,
            kind=part.kind,
            text=render(part.text, values),
            media=self._media(part) if part.kind == "media" else None,
            action=self.action,
            subject=render(self.subject, values),
            unsubscribe_url=self.unsubscribe_url(address) if self.unsubscribe_url else "",
        )

    def _media(self, part: FrozenPart) -> MediaRef:
        return MediaRef(
            sha256=part.sha256,
            filename=part.filename,
            content_type=part.content_type,
            open=lambda: self.open_file(part.file),
            handle=self.handles.get(part.sha256),
        )
