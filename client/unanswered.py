"""Remembers the names of requests that had no answer yet, so that doing the same again does nothing twice.

Each request that changes something is sent with an Idempotency-Key. Before it leaves, its name is written into a file;
once its result is known, the file is deleted. Where no answer came (the network failed, the program was ended), the
same request takes the same name again, and Paceline gives the answer of the first one. It knows names for 24 hours.
"""

import hashlib
import json
import os
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from client.errors import ClientError

KEPT_SECONDS = 23 * 3600  # an hour less than Paceline keeps an answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Name:
    """The name of a request. `again` says that an earlier try of it had no answer."""

    text: str
    again: bool
    file: Path | None

    def settle(self) -> None:
        """Forget the name: its result is known."""
        if self.file is not None:
            self.file.unlink(missing_ok=True)


def folder() -> Path:
    """Return the folder of the names."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(os.environ.get("PACELINE_STATE") or Path(state) / "paceline") / "unanswered"


def name_for(*said: str) -> Name:
    """Return the name for a request that says this; raise ClientError for one that is too old to be asked again."""
    file = folder() / hashlib.sha256("\n".join(said).encode()).hexdigest()
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return _new(file) or _known(file)
    except OSError:  # such as a home folder that cannot be written: names last as long as this program
        return Name(text=str(uuid.uuid4()), again=False, file=None)


def _new(file: Path) -> Name | None:
    """Return a new name and write it; None where there is one already."""
    text = str(uuid.uuid4())
    draft = file.with_name(f".{text}")
    draft.write_text(json.dumps({"name": text, "at": time.time()}))
    try:
        os.link(draft, file)  # all of it or nothing, and never over another one
    except FileExistsError:
        return None
    finally:
        draft.unlink()
    return Name(text=text, again=False, file=file)


def _known(file: Path) -> Name:
    with suppress(ValueError, KeyError, TypeError):
        said = json.loads(file.read_text())
        text, at = str(said["name"]), float(said["at"])
        if time.time() - at < KEPT_SECONDS:
            return Name(text=text, again=True, file=file)
        file.unlink(missing_ok=True)
        raise ClientError(
            f"The same request left on {datetime.fromtimestamp(at).astimezone():%d %B %H:%M} and had no answer; that "
            "is too long ago to ask for it. See what was done (paceline runs list). To do it, run the command again."
        )
    file.unlink(missing_ok=True)
    raise ClientError(f"{file} could not be read and was deleted. See what was done: paceline runs list")
