"""Keeps media and imported lists from other users of the machine.

New files are made that way by the storage. Those that an older release left are changed when the web process starts.
"""

import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import structlog

log = structlog.get_logger(__name__)

FILE, FOLDER = 0o600, 0o700
OTHERS = stat.S_IRWXG | stat.S_IRWXO


def make_private(folder: Path) -> threading.Thread:
    """Close the folder at once, and what is in it in a thread of its own, which is returned.

    Closing the folder is enough to keep others out; the rest is for a folder that is moved or shared later.
    """
    _close(folder, FOLDER)
    rest = threading.Thread(target=_close_all, args=(folder,), name="private-files", daemon=True)
    rest.start()
    return rest


def _close_all(folder: Path) -> None:
    for path, mode in _below(folder):
        _close(path, mode)


def _below(folder: Path) -> Iterator[tuple[Path, int]]:
    for place, folders, files in os.walk(folder):
        yield from ((Path(place, name), FOLDER) for name in folders)
        yield from ((Path(place, name), FILE) for name in files)


def _close(path: Path, mode: int) -> None:
    try:
        found = path.lstat().st_mode
        if found & OTHERS and not stat.S_ISLNK(found):
            path.chmod(mode)
    except FileNotFoundError:
        pass  # deleted meanwhile, or never made
    except OSError:
        log.warning("file_not_private", path=str(path))
