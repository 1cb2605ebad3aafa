"""The log: one JSON object per line for every message or media request, written as it is received."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TypedDict

MAX_LOGGED_TEXT = 200
TAIL_BYTES = 64 * 2**20  # bytes that a start reads: about 150,000 lines, in a few seconds

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class Line(TypedDict):
    """One line of the log: the facts of one request."""

    at: int  # milliseconds since 1970, at receipt
    account: str
    # "message", "media", "fetch" (of a file from its address), "reply", "typing", "session" (where it reports),
    # "forget" (an account; "": all)
    kind: str
    to: str
    key: str  # the Idempotency-Key, or the reference
    idempotent: bool  # whether the key was honoured
    text: str  # the first 200 characters of the text or caption; of an upload, the file's name
    hash: str  # of the whole text
    chars: int  # of the whole text
    media: str  # the handle; of a file without one, the SHA-256 of its content
    type: str  # an upload's content type
    bytes: int  # of the request's body; of a fetched file, what came from its address
    file: str  # the name of a file that came with the message, or by its address
    delivered: bool  # whether the recipient got it by this request
    duplicate: bool  # a key seen before: answered with the first id, delivered nothing
    status: int  # of the answer; 0: never answered
    fault: str  # "", "hang", "cut" or "garbage"
    id: str


class Log:
    """Appends whole lines to one file; readers of the file see each line at once."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        _drop_torn_line(path)
        self.path = path
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def write(self, line: Line) -> None:
        """Write one line in one call. It must survive this process, not the machine: no flush to the disk."""
        os.write(self._file, (_encode(line) + "\n").encode(errors="backslashreplace"))

    def close(self) -> None:
        os.close(self._file)


def read(path: Path, last_bytes: int | None = None) -> Iterator[Line]:
    """Return the lines of a log, oldest first; a last line that is still being written is left out."""
    if not path.exists():
        return
    with path.open("rb") as file:
        if last_bytes is not None and path.stat().st_size > last_bytes:
            file.seek(-last_bytes, os.SEEK_END)
            file.readline()
        for raw in file:
            if raw.endswith(b"\n"):
                yield json.loads(raw)


def _drop_torn_line(path: Path) -> None:
    """Cut off a last line that a full disk left without its end, so that the next one starts on its own."""
    if not path.exists():
        return
    with path.open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 2**20))
        file.truncate(file.tell() + file.read().rfind(b"\n") + 1)
