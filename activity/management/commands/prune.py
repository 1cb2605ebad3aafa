from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from activity.pruning import prune
from audit.record import record
from delivery.management.output import as_json, takes_json


class Command(BaseCommand):
    help = (
        "Remove the details of what is older than KEEP_DAYS: targets of ended runs, ledger rows, replies, "
        "notifications, imports, tests and ended logins. Runs keep their counts."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--days", type=int, help="Instead of KEEP_DAYS.")
        takes_json(parser)
        parser.add_argument("--dry-run", action="store_true", help="Count what would go, and remove nothing.")

    def handle(self, *_: Any, **options: Any) -> None:
        days = options["days"] if options["days"] is not None else settings.KEEP_DAYS
        if not days:
            raise CommandError("Everything is kept: set KEEP_DAYS, or name the days with --days 90.")
        if days < prune.FEWEST_DAYS:
            raise CommandError(f"Limits need the last {prune.FEWEST_DAYS} days: keep at least so many.")
        before = prune.border(days)
        found = prune.would_remove(before) if options["dry_run"] else prune.prune(before)
        if not options["dry_run"]:
            record("data.pruned", after={"before": before, **found})
        if options["json"]:
            self.stdout.write(as_json({"before": before, "dry_run": options["dry_run"], "rows": dict(found)}))
            return
        for name, number in found.items():
            if number:
                self.stdout.write(f"{number:>12,} {name}")
        verb = "would be removed" if options["dry_run"] else "were removed"
        self.stdout.write(f"{sum(found.values()):,} rows from before {before:%Y-%m-%d %H:%M} UTC {verb}.")
