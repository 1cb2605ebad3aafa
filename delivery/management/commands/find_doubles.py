import csv
from dataclasses import asdict, astuple, fields
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from accounts.downloads import cell
from delivery.management.output import as_json, takes_json
from delivery.recovery.doubles import Double, find


class Command(BaseCommand):
    """List messages sent twice. Exit codes: 0 there are none, 1 there are some."""

    help = "List messages that somebody got twice, by the ledger: the same target, or the same moment of a reminder."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--days", type=float, default=7, help="How many days to look back.")
        takes_json(parser)
        parser.add_argument("--csv", action="store_true", help="As CSV, for a spreadsheet.")

    def handle(self, *_: Any, **options: Any) -> None:
        found = list(find(since=timezone.now() - timedelta(days=options["days"])))
        if options["json"]:
            self.stdout.write(as_json([asdict(double) for double in found]))
        elif options["csv"]:
            writer = csv.writer(self.stdout)
            writer.writerow(field.name for field in fields(Double))
            writer.writerows(map(cell, astuple(double)) for double in found)
        else:
            for double in found:
                self.stdout.write(_line(double))
        if found:
            raise CommandError(f"Sent more than once: {len(found):,}.", returncode=1)
        if not options["csv"] and not options["json"]:
            self.stdout.write("Nothing was sent twice.")


def _line(double: Double) -> str:
    return (
        f"{double.first_at:%Y-%m-%d %H:%M:%S} {double.kind}: {double.recipient} got part {double.part + 1} "
        f"{double.times} times from {double.account} of {double.owner} (run {double.runs}; {double.provider_ids})"
    )
