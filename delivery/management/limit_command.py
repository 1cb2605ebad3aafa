"""The base of the commands about daily caps: the choice of accounts."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts.models import Account
from delivery.management.output import takes_json


class LimitCommand(BaseCommand):
    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--account", type=int, help="This account alone, by its number.")
        takes_json(parser)

    def accounts(self, options: dict[str, Any]) -> list[Account]:
        accounts = Account.objects.defer("credentials").order_by("pk")
        if options["account"] is None:
            return list(accounts)
        found = list(accounts.filter(pk=options["account"]))
        if not found:
            raise CommandError(f"There is no account {options['account']}.", returncode=2)
        return found
