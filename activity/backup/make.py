"""Makes a backup.

1. Make a folder beside the one that is asked for; nobody else may read it.
2. In one snapshot, while everything runs: write all tables, and list the files that they name.
3. Copy the files. They are named by their content and never change; one that was discarded meanwhile is noted.
4. Write the manifest with all checksums, then give the folder its name: an interrupted backup never looks complete.
"""

import shutil
import tomllib
from pathlib import Path

from django.conf import settings
from django.db.migrations.recorder import MigrationRecorder

from activity.backup import files, tables
from activity.backup.manifest import BadBackupError, Manifest, key_names
from activity.backup.progress import Progress
from audit.record import record
from config.private_files import FILE, FOLDER

PART = ".part"


def backup(folder: Path, progress: Progress) -> Manifest:
    """Write a backup into `folder`, which must not be there yet; return its manifest."""
    if folder.exists():
        raise BadBackupError(f"{folder} is there already. Name a new folder: a backup replaces nothing.")
    part = folder.with_name(folder.name + PART)
    shutil.rmtree(part, ignore_errors=True)
    for place in (part, part / "tables", part / "files"):
        place.mkdir(mode=FOLDER, parents=True)
    try:
        manifest = _write(part, progress)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    for path in part.rglob("*"):
        path.chmod(FOLDER if path.is_dir() else FILE)
    part.rename(folder)
    record("data.backed_up", after={"rows": manifest.rows, "files": len(manifest.files), "of": manifest.at})
    return manifest


def _write(part: Path, progress: Progress) -> Manifest:
    with tables.snapshot() as at:
        known = tables.known()
        progress.begin("Rows", sum(about for _, about, _ in known))
        applied = sorted(MigrationRecorder.Migration.objects.values_list("app", "name"))
        written = [tables.write(part, name, columns, progress.more) for name, _, columns in known]
        names, numbers = files.named(), tables.sequences()
    progress.begin("Files", len(names))
    found, missing = [], []
    for number, name in enumerate(names):
        stored = files.write(part, number, name)
        found += [stored] if stored else []
        missing += [] if stored else [name]
        progress.more(name, 1)
    progress.end()
    manifest = Manifest(
        at=at,
        version=_version(),
        migrations=applied,
        tables=written,
        files=found,
        missing=missing,
        sequences=numbers,
        keys=key_names(settings.ENCRYPTION_KEYS),
    )
    manifest.write(part)
    return manifest


def _version() -> str:
    package = tomllib.loads((settings.BASE_DIR / "pyproject.toml").read_text())
    return str(package["project"]["version"])
