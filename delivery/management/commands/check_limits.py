from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils import timezone

from delivery.management.limit_command import LimitCommand
from delivery.management.output import records, say
from delivery.management.table import table
from delivery.planning.overbooked import Overbooked, planned_over, sent_over

HEAD = ("account", "name", "action", "span", "day", "sent", "planned", "cap", "over")


class Command(LimitCommand):
    """List days over their cap. Exit codes: 0 there are none, 1 there are some, 2 there is no such account."""

    help = "List every day of every account that is over its daily cap: what was sent, and what is planned."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--days", type=int, default=7, help="How many days to look back.")

    def handle(self, *_: Any, **options: Any) -> None:
        accounts, now = self.accounts(options), timezone.now()
        sent = sent_over(accounts, now=now, days=options["days"])
        planned = list(planned_over(accounts, now=now))
        rows = [_row(each) for each in (*sent, *planned)]
        text = "\n".join(table(HEAD, rows)) if rows else "No day is over its cap."
        say(self, options, text, records(HEAD, rows))
        if not rows:
            return
        fix = " `manage.py fix_limits` moves what is planned." if planned else ""
        raise CommandError(
            f"Over their cap: {_days(len(sent))} by what was sent, {_days(len(planned))} by what is planned.{fix}",
            returncode=1,
        )


def _row(each: Overbooked) -> tuple[object, ...]:
    total = each.sent + each.planned
    return (
        each.account.pk,
        each.account.name,
        each.action,
        each.span,
        each.day,
        each.sent,
        each.planned,
        each.cap,
        total - each.cap,
    )


def _days(count: int) -> str:
    return "1 day" if count == 1 else f"{count} days"
