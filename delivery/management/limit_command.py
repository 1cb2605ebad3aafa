"""The base of the commands about daily caps: the choice of accounts, and the table."""

from collections.abc import Sequence
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts.models import Account

Row = Sequence[object]


class LimitCommand(BaseCommand):
    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--account", type=int, help="This account alone, by its number.")

    def accounts(self, options: dict[str, Any]) -> list[Account]:
        accounts = Account.objects.defer("credentials").order_by("pk")
        if options["account"] is None:
            return list(accounts)
        found = list(accounts.filter(pk=options["account"]))
        if not found:
            raise CommandError(f"There is no account {options['account']}.", returncode=2)
        return found

    def table(self, head: Row, rows: Sequence[Row]) -> None:
        """Return rows as text: columns as wide as their widest cell, numbers to the right."""
        cells = [[str(cell) for cell in row] for row in (head, *rows)]
        widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
        numeric = [all(isinstance(row[column], int) for row in rows) for column in range(len(head))]
        for row in cells:
            aligned = (
                cell.rjust(width) if right else cell.ljust(width)
                for cell, width, right in zip(row, widths, numeric, strict=True)
            )
            self.stdout.write("  ".join(aligned).rstrip())
