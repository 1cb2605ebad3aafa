from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError, CommandParser

from activity.pruning import prune
from audit.record import record
from config.retention import FEWEST, days_of
from delivery.management.output import as_json, takes_json


class Command(BaseCommand):
    help = (
        "Remove what is older than KEEP_DAYS and KEEP_DAYS_OF say: targets of ended runs, ledger rows, replies, "
        "notifications, imports, tests and ended logins. Runs keep their counts."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--days", type=int, help="Instead of KEEP_DAYS and KEEP_DAYS_OF.")
        parser.add_argument(
            "--only",
            nargs="+",
            default=[],
            metavar="KIND=DAYS",
            help="Only these kinds: replies=90 imports=7",
        )
        takes_json(parser)
        parser.add_argument("--dry-run", action="store_true", help="Count what would go, and remove nothing.")

    def handle(self, *_: Any, **options: Any) -> None:
        borders = _borders(options["days"], options["only"])
        found = prune.would_remove(borders) if options["dry_run"] else prune.prune(borders)
        if not options["dry_run"]:
            record("data.pruned", after={"before": dict(borders), **found})
        if options["json"]:
            told = {"before": dict(borders), "dry_run": options["dry_run"], "rows": dict(found)}
            self.stdout.write(as_json(told))
            return
        for name, number in found.items():
            if number:
                self.stdout.write(f"{number:>12,} {name}")
        verb = "would be removed" if options["dry_run"] else "were removed"
        self.stdout.write(f"{sum(found.values()):,} rows{_since(borders)} {verb}.")


def _since(borders: Mapping[str, datetime]) -> str:
    """Return from before when rows are removed, where it is one time for all kinds."""
    days = {f"{before:%Y-%m-%d %H:%M}" for before in borders.values()}
    return f" from before {days.pop()} UTC" if len(days) == 1 else ""


def _borders(days: int | None, only: list[str]) -> dict[str, datetime]:
    """Return before when each kind is old, as the command was told, or as the settings say."""
    if only:
        return _chosen(only)
    if days is None:
        borders = prune.borders_of_settings()
        if not borders:
            raise CommandError("Everything is kept: set KEEP_DAYS, or name the days with --days 90.")
        return borders
    if days < prune.FEWEST_DAYS:
        raise CommandError(f"Limits need the last {prune.FEWEST_DAYS} days: keep at least so many.")
    return dict.fromkeys(prune.KINDS.keys() - prune.ASKED_FOR_ALONE, prune.border(days))


def _chosen(only: list[str]) -> dict[str, datetime]:
    try:
        days = days_of(only)
    except ImproperlyConfigured as error:
        raise CommandError(str(error).replace("KEEP_DAYS_OF has", "--only has")) from error
    elsewhere = sorted(days.keys() - prune.KINDS.keys())
    if elsewhere:
        raise CommandError(f"{', '.join(elsewhere)}: removed by a task of its own, as KEEP_DAYS_OF says.")
    if any(number == 0 for number in days.values()):
        raise CommandError(f"0 keeps a kind. Name days, such as replies={FEWEST['replies']}.")
    return {kind: prune.border(number) for kind, number in days.items()}
