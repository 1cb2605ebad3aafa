"""Reads a message in the format of the gateway's interface."""

import json
from dataclasses import dataclass
from typing import Any

from sandbox.media import FileWish

MAX_ADDRESS = 255
MAX_CHARS = 65_536


class BadRequestError(ValueError):
    """Raised when the request cannot be understood; `error` is the text of the answer."""

    def __init__(self, status: int, error: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.error = error
        self.reason = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    to: str
    text: str  # or the caption
    media: str
    reference: str  # the sender's own name for the message: logged, never used to find doubles
    file: FileWish | None = None


def parse(body: bytes) -> Incoming:
    """Return the message in a request's body; raise BadRequestError."""
    message = read_object(body)
    to, media = _text(message, "to"), _text(message, "media")
    file = _file(message.get("file"))
    text = _text(message, "caption" if media or file else "text")
    if not to or len(to) > MAX_ADDRESS:
        raise BadRequestError(400, "bad_request", "`to` is missing or too long.")
    if not text and not media and not file:
        raise BadRequestError(400, "bad_request", "A message needs a text or media.")
    if len(text) > MAX_CHARS:
        raise BadRequestError(422, "text_too_long", f"A text has at most {MAX_CHARS} characters.")
    return Incoming(to=to, text=text, media=media, reference=_text(message, "reference"), file=file)


def _file(wish: object) -> FileWish | None:
    """Return the file that a message holds or names: `{"filename", "content_type", "url" | "data"}`."""
    if wish is None:
        return None
    if not isinstance(wish, dict) or bool(wish.get("url")) == bool(wish.get("data")):
        raise BadRequestError(400, "bad_request", "`file` has either a `url` or `data`.")
    return FileWish(
        filename=_text(wish, "filename") or "file",
        content_type=_text(wish, "content_type"),
        url=_text(wish, "url"),
        data=_text(wish, "data"),
    )


def read_object(body: bytes) -> dict[str, Any]:
    """Return the JSON object in a body; raise BadRequestError."""
    try:
        message = json.loads(body)
    except ValueError:
        message = None
    if not isinstance(message, dict):
        raise BadRequestError(400, "bad_request", "The body is not a JSON object.")
    return message


def _text(message: dict[str, Any], name: str) -> str:
    value = message.get(name) or ""
    if not isinstance(value, str):
        raise BadRequestError(400, "bad_request", f"`{name}` is not a text.")
    return value
