"""The list of what a backup holds: `manifest.json`, the last file that is written and the first that is read."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

NAME = "manifest.json"
FORMAT = 1
CHUNK = 1024 * 1024
WORD, NUMBERED = re.compile(r"[a-z_][a-z0-9_]{0,62}"), re.compile(r"files/\d{8,}")


class BadBackupError(Exception):
    """The backup cannot be restored. The text says what is wrong with it and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The rows of one table, in a compressed file as COPY writes them."""

    name: str
    columns: Sequence[str]
    rows: int
    file: str
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """One media file or imported list."""

    name: str
    file: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """Everything that a restore needs to know about a backup."""

    at: datetime  # the moment of the rows
    version: str  # of Paceline
    migrations: Sequence[tuple[str, str]]
    tables: Sequence[Table]
    files: Sequence[Stored]
    missing: Sequence[str]  # files that rows name and that were not there
    sequences: Mapping[str, int]
    keys: Sequence[str]  # which keys of ENCRYPTION_KEY there were, as `key_names` has them

    @property
    def rows(self) -> int:
        return sum(table.rows for table in self.tables)

    def write(self, folder: Path) -> None:
        body = {"format": FORMAT, **asdict(self), "at": self.at.isoformat()}
        (folder / NAME).write_text(json.dumps({**body, "checksum": _checksum(body)}, indent=1))


def read(folder: Path) -> Manifest:
    """Return the manifest of a backup; raise BadBackupError."""
    try:
        given: dict[str, Any] = json.loads((folder / NAME).read_text())
    except FileNotFoundError as error:
        raise BadBackupError(
            f"There is no {NAME} in {folder}: this is no backup, or one that was interrupted."
        ) from error
    except NotADirectoryError as error:
        raise BadBackupError(
            f"{folder} is a file. A backup of Paceline is a folder with {NAME} in it."
        ) from error
    except (ValueError, RecursionError) as error:
        raise BadBackupError(f"{folder / NAME} is damaged: it cannot be read.") from error
    try:
        return _checked(given)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise BadBackupError(f"{folder / NAME} is damaged: something is missing in it.") from error


def _checked(given: dict[str, Any]) -> Manifest:
    """Return the manifest in a file; raise BadBackupError for one of a newer version, or one that somebody changed."""
    if given.get("format", FORMAT) > FORMAT:
        raise BadBackupError(
            "The backup was made by a newer version of Paceline. Install that version first."
        )
    checksum = given.pop("checksum", None)  # the first versions wrote none
    if checksum is not None and checksum != _checksum(given):
        raise BadBackupError(f"{NAME} was changed after the backup was made. Use another backup.")
    given.pop("format", None)
    manifest = _manifest(given)
    listed: list[Table | Stored] = [*manifest.tables, *manifest.files]
    if strange := [each.file for each in listed if not _is_ours(each)]:
        raise BadBackupError(f"{NAME} names {strange[0]!r}, which no backup has: it is not one of Paceline.")
    return manifest


def _is_ours(each: Table | Stored) -> bool:
    """Return whether a file has a name that `backup` gives, so that nothing outside of it is touched."""
    if isinstance(each, Table):
        words = (each.name, *each.columns)
        return each.file == f"tables/{each.name}.copy.gz" and all(WORD.fullmatch(word) for word in words)
    inside = not each.name.startswith("/") and ".." not in each.name.split("/")
    return NUMBERED.fullmatch(each.file) is not None and inside


def _checksum(body: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def _manifest(given: dict[str, Any]) -> Manifest:
    return Manifest(
        **given
        | {
            "at": datetime.fromisoformat(given["at"]),
            "migrations": [(app, name) for app, name in given["migrations"]],
            "tables": [Table(**table) for table in given["tables"]],
            "files": [Stored(**file) for file in given["files"]],
        }
    )


def damaged(folder: Path, manifest: Manifest) -> Iterator[str]:
    """Yield the files of a backup that are missing or are not as they were written."""
    listed: list[Table | Stored] = [*manifest.tables, *manifest.files]
    for each in listed:
        path = folder / each.file
        if not path.is_file() or digest_of(path) != each.sha256:
            yield each.file


def digest_of(path: Path) -> str:
    found = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            found.update(chunk)
    return found.hexdigest()


def key_names(keys: Sequence[str]) -> list[str]:
    """Return short names of keys, from which nobody can learn a key."""
    return [hashlib.sha256(f"paceline key {key.strip()}".encode()).hexdigest()[:12] for key in keys]
