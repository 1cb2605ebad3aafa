"""The files of a backup: media and imported lists, from a folder or a bucket."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

from django.apps import apps
from django.core.files.base import File
from django.core.files.storage import default_storage
from django.db.models import FileField

from activity.backup.manifest import Stored

CHUNK = 1024 * 1024


def named() -> list[str]:
    """Return the names of all files that rows name; inside a snapshot, those of its moment."""
    found = set[str]()
    for model in apps.get_models():
        for field in model._meta.local_fields:
            if isinstance(field, FileField):
                rows = model._base_manager.exclude(**{field.name: ""}).exclude(**{field.name: None})
                found.update(rows.values_list(field.name, flat=True).iterator())
    return sorted(found)


def write(folder: Path, number: int, name: str) -> Stored | None:
    """Copy one file into the backup; return None if it is not there: an import may have been discarded."""
    file = f"files/{number:08}"
    digest, size = hashlib.sha256(), 0
    try:
        with default_storage.open(name) as source, (folder / file).open("wb") as out:
            while chunk := source.read(CHUNK):
                digest.update(chunk)
                size += len(chunk)
                out.write(chunk)
    except FileNotFoundError:
        (folder / file).unlink(missing_ok=True)
        return None
    return Stored(name=name, file=file, size=size, sha256=digest.hexdigest())


def bring_back(folder: Path, files: list[Stored]) -> Iterator[str]:
    """Put the files back under their names; yield each name. One that is there with its size is left."""
    for each in files:
        if not (default_storage.exists(each.name) and default_storage.size(each.name) == each.size):
            with (folder / each.file).open("rb") as source:
                default_storage.delete(each.name)
                default_storage.save(each.name, File(source))
        yield each.name
