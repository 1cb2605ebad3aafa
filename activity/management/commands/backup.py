import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from activity.backup.make import backup
from activity.backup.manifest import BadBackupError, Manifest
from activity.backup.progress import Progress
from delivery.management.output import say, takes_json


class Command(BaseCommand):
    """Make a backup. Exit codes: 0 done, 1 not possible."""

    help = "Write all rows and files into a new folder, while everything runs. Nothing waits for it."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "folder", nargs="?", help="The new folder; without it, paceline-<time> in the present one."
        )
        takes_json(parser)

    def handle(self, *_: Any, **options: Any) -> None:
        folder = Path(options["folder"] or f"paceline-{timezone.now():%Y-%m-%d-%H%M%S}").absolute()
        try:
            manifest = backup(folder, Progress(None if options["json"] else sys.stderr))
        except (BadBackupError, OSError) as error:
            raise CommandError(str(error), returncode=1) from error
        say(self, options, _words(folder, manifest), _facts(folder, manifest))


def _words(folder: Path, manifest: Manifest) -> str:
    what = f"{manifest.rows:,} rows and {len(manifest.files):,} files"
    lines = [f"{what}, as of {manifest.at:%Y-%m-%d %H:%M:%S} UTC, are in {folder}."]
    if manifest.missing:
        lines.append(f"{len(manifest.missing):,} files were not there, such as {manifest.missing[0]}.")
    lines.append("ENCRYPTION_KEY is not in it: keep it elsewhere, the credentials cannot be read without it.")
    return "\n".join(lines)


def _facts(folder: Path, manifest: Manifest) -> dict[str, object]:
    return {
        "folder": str(folder),
        "at": manifest.at,
        "rows": manifest.rows,
        "files": len(manifest.files),
        "missing": list(manifest.missing),
    }
