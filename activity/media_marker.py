"""Decides whether two processes see the same media, by a file that the web process writes into the folder or bucket.

A folder of the same name on another machine is another folder, where a worker finds no files.
"""

import secrets
import threading
import time
from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.utils import timezone

from config.deadline import within

NAME = ".paceline-folder"
SECONDS = 1.0  # a network share that hangs must not block the caller
BUCKET_SECONDS = 3.0  # the same for a bucket, which is farther away
SETTLED = timedelta(seconds=20)  # after which every worker has looked


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """The contents of the marker that this process sees, or nothing where it sees none."""

    text: str = ""
    settled: bool = False  # old enough for every worker to have read it
    problem: str = ""  # why media cannot be read or written here; for people at the terminal


NONE = Marker()
_looking = threading.Lock()
_since = 0.0  # when the look that is under way began


def look(*, write: bool = False) -> Marker:
    """Return the marker, written first if `write` is set, or the problem if the disk or bucket does not answer.

    A disk that hangs blocks one thread only: while that thread waits, no other one looks.
    """
    global _since  # noqa: PLW0603 - one look of the process at a time
    seconds = BUCKET_SECONDS if settings.MEDIA_BUCKET else SECONDS
    if not _looking.acquire(blocking=False):
        silent = time.monotonic() - _since
        return Marker(problem=f"no answer for {silent:.0f} s") if silent > seconds else NONE
    _since = time.monotonic()
    try:
        return within(seconds, lambda: _released(write=write), too_late=lambda _: None)
    except FileNotFoundError:
        return NONE  # nobody has written it yet
    except (OSError, UnicodeDecodeError) as error:
        return Marker(problem=str(error))


def _released(*, write: bool) -> Marker:
    try:
        if write and not default_storage.exists(NAME):
            _write()
        with default_storage.open(NAME) as file:
            text = bytes(file.read()).decode().strip()
        age = timezone.now() - default_storage.get_modified_time(NAME)
        return Marker(text=text, settled=age > SETTLED)
    finally:
        _looking.release()


def _write() -> None:
    """Write the marker; where another process was faster, its marker counts."""
    written = default_storage.save(NAME, ContentFile(secrets.token_hex(16).encode()))
    if written != NAME:
        default_storage.delete(written)
