from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db import transaction
from django.utils import timezone

from accounts.models import Account
from audit.record import record
from delivery import live
from delivery.management.limit_command import LimitCommand
from delivery.management.output import records, say
from delivery.management.table import Row, table
from delivery.planning.overbooked import at_work, planned_over
from delivery.planning.replan import relieve

MOST_ROUNDS = 1000
HEAD = ("account", "name", "action", "run", "targets", "first")


class Command(LimitCommand):
    """Move work off full days. Exit codes: 0 no day is over its cap, 1 some still are, 2 no such account."""

    help = "Move planned work to later days until no day of any account is over its daily cap."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--dry-run", action="store_true", help="Say what would be moved, and change nothing."
        )

    def handle(self, *_: Any, **options: Any) -> None:
        accounts, now, dry = self.accounts(options), timezone.now(), options["dry_run"]
        rows = _without_room(accounts, now) if dry else _moved(accounts, now)
        text = "\n".join(table(HEAD, rows)) if rows else "No day is over its cap: nothing to move."
        say(self, options, text, records(HEAD, rows))
        if dry:
            return
        record("run.replanned", after={"moved": records(HEAD, rows)[:100]})
        live.flush()
        if left := list(planned_over(accounts, now=now)):
            names = ", ".join(sorted({str(each.account) for each in left}))
            raise CommandError(
                f"Still over their cap: {names}. Messages with more parts than a day allows fit no day: "
                "raise the cap, or cancel their runs.",
                returncode=1,
            )


def _moved(accounts: Sequence[Account], now: datetime) -> list[Row]:
    return [row for account, action in at_work(accounts) for row in _moves(account, action, now)]


def _without_room(accounts: Sequence[Account], now: datetime) -> list[Row]:
    with transaction.atomic():
        rows = _moved(accounts, now)
        transaction.set_rollback(True)
    return rows


def _moves(account: Account, action: str, now: datetime) -> list[Row]:
    rows: list[Row] = []
    for _ in range(MOST_ROUNDS):
        moved = relieve(account, action, now=now)
        if not moved:
            break
        rows += [
            (account.pk, account.name, action, each.run_id, each.targets, f"{each.first:%Y-%m-%d %H:%M} UTC")
            for each in moved
        ]
    return rows
