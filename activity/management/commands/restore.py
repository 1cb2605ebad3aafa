import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.dateparse import parse_datetime

from activity.backup.bring_back import Restored, check, restore, unreadable_accounts
from activity.backup.manifest import BadBackupError
from activity.backup.progress import Progress
from delivery import live
from delivery.management.output import say, takes_json
from delivery.recovery import stop_sending
from delivery.recovery.after_restore import doubt

SHOWN = 20
ASK = "Mark these messages as unconfirmed, so that none of them is sent again unasked? Type yes: "


class Command(BaseCommand):
    """Restore a backup. Exit codes: 0 done, 1 not possible, 2 a time is wrong."""

    help = "Restore a backup into an empty installation. All sending is stopped until you start it."
    requires_system_checks: list[str] = []
    requires_migrations_checks = False

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", help="The folder that `backup` made.")
        parser.add_argument("--until", help="When the last message may have left, in UTC; without it, now.")
        parser.add_argument("--check", action="store_true", help="Only check it, and change nothing.")
        parser.add_argument(
            "--yes", action="store_true", help="Mark doubtful messages as unconfirmed unasked."
        )
        parser.add_argument(
            "--without-credentials", action="store_true", help="Go on with another ENCRYPTION_KEY."
        )
        takes_json(parser)

    def handle(self, *_: Any, **options: Any) -> None:
        folder, keyless = Path(options["folder"]), options["without_credentials"]
        until = parse_datetime(f"{options['until']}+00:00") if options["until"] else None
        if options["until"] and until is None:
            raise CommandError("Write --until as 2026-11-18 10:12:00, in UTC.", returncode=2)
        try:
            if options["check"]:
                manifest = check(folder, keyless=keyless)
                say(
                    self,
                    options,
                    f"This backup of {manifest.at:%Y-%m-%d %H:%M} UTC can be restored.",
                    {"ok": True},
                )
                return
            progress = Progress(None if options["json"] else sys.stderr)
            found = restore(folder, progress, until=until, keyless=keyless)
        except (BadBackupError, OSError) as error:
            raise CommandError(str(error), returncode=1) from error
        applied = self._decide(found, options)
        live.flush()
        say(self, options, "\n".join(_ending(found, applied=applied)), _facts(found, applied=applied))

    def _decide(self, found: Restored, options: dict[str, Any]) -> bool:
        """Show what may have been sent since the backup, and ask about it; return whether it is unconfirmed now."""
        if not found.doubts:
            return False
        if not options["json"]:
            self._list(found)
        asks = sys.stdin.isatty() and not options["json"]
        if not (options["yes"] or (asks and input(ASK).strip().casefold() == "yes")):
            return False
        for each in found.doubts:
            doubt(each, found.gap)
        stop_sending.decided()
        return True

    def _list(self, found: Restored) -> None:
        gap = f"{found.gap.since:%Y-%m-%d %H:%M:%S} and {found.gap.until:%Y-%m-%d %H:%M:%S} UTC"
        self.stdout.write(f"Up to {found.messages:,} messages may have been sent between {gap}:")
        for each in found.doubts[:SHOWN]:
            words = f"Run {each.run.pk}, {each.run.name}, from {each.account}: {len(each.targets):,}"
            self.stdout.write(f"  {words}")
        if len(found.doubts) > SHOWN:
            self.stdout.write(f"  and {len(found.doubts) - SHOWN:,} more runs")


def _ending(found: Restored, *, applied: bool) -> list[str]:
    rows, files = f"{found.manifest.rows:,} rows", f"{len(found.manifest.files):,} files"
    lines = [f"Restored: {rows} and {files}. All sending is stopped."]
    if applied:
        lines.append(
            f"{found.messages:,} messages are unconfirmed now: the pages of their runs ask about them."
        )
    elif found.doubts:
        lines.append("Nobody has decided about the messages above, so sending cannot be started yet.")
        lines.append("Decide with `manage.py after_restore --apply` or `--nothing-was-sent`.")
    if shut := unreadable_accounts():
        lines.append(f"Enter the credentials again of: {', '.join(shut[:SHOWN])}.")
    lines.append("Opt-outs and cancels since the backup are lost: repeat them first (docs/backup.md).")
    lines.append("Then start the workers, and `manage.py start_sending`.")
    return lines


def _facts(found: Restored, *, applied: bool) -> dict[str, object]:
    return {
        "at": found.manifest.at,
        "rows": found.manifest.rows,
        "files": len(found.manifest.files),
        "doubtful": [
            {"run": each.run.pk, "account": each.account.pk, "messages": len(each.targets)}
            for each in found.doubts
        ],
        "decided": applied or not found.doubts,
    }
