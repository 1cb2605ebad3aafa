from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from activity import ledger_months


class Command(BaseCommand):
    """Makes the ledger's tables of the next months, as beat does, and prints all of them with their sizes."""

    help = "Make the ledger's tables of the present and the next three months, and list all of its tables."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--all",
            action="store_true",
            help="Move any number of rows to their months: their month waits meanwhile.",
        )

    def handle(self, *_: Any, **options: Any) -> None:
        failed = ledger_months.make_ahead(
            timezone.now(), most=None if options["all"] else ledger_months.MOST_MOVED
        )
        for table, size, rows in ledger_months.sizes():
            self.stdout.write(f"{table:<28} {size / 1e6:>10,.0f} MB {rows:>15,.0f} rows, about")
        if failed:
            raise CommandError(
                f"Not made: {', '.join(failed)}. Somebody reads the ledger for long (look at pg_stat_activity), or "
                f"more than {ledger_months.MOST_MOVED:,} rows are in {ledger_months.REST}: then stop sending "
                "(`manage.py stop_sending`) and run this with --all."
            )
