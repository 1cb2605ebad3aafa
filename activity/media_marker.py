"""Decides whether two processes see the same MEDIA_ROOT, by a file that the web process writes there.

A folder of the same name on another machine is another folder, where a worker finds no files.
"""

import os
import secrets
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from config.deadline import within

NAME = ".paceline-folder"
SECONDS = 1.0  # a network share that hangs must not block the caller
SETTLED = 20.0  # seconds after which every worker has looked


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """The contents of the marker in the folder that this process sees, or nothing when there is no folder."""

    text: str = ""
    settled: bool = False  # old enough for every worker to have read it


NONE = Marker()
_looking = threading.Lock()


def look(*, write: bool = False) -> Marker:
    """Return the marker, written first if `write` is set, or none if the disk does not answer.

    A disk that hangs blocks one thread only: while that thread waits, no other one looks.
    """
    if not _looking.acquire(blocking=False):
        return NONE
    try:
        return within(SECONDS, lambda: _released(write=write), too_late=lambda _: None)
    except (OSError, UnicodeDecodeError):
        return NONE


def _released(*, write: bool) -> Marker:
    try:
        if write and not _file().exists():
            _write()
        return Marker(
            text=_file().read_text().strip(), settled=time.time() - _file().stat().st_mtime > SETTLED
        )
    finally:
        _looking.release()


def _write() -> None:
    _file().parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        handle = os.open(_file(), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        with os.fdopen(handle, "w") as file:
            file.write(secrets.token_hex(16))


def _file() -> Path:
    return Path(settings.MEDIA_ROOT) / NAME
