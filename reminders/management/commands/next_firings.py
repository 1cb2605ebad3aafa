from datetime import datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db.models import QuerySet

from accounts.roles import visible
from delivery import audience
from delivery.management.output import say, takes_json
from delivery.management.run_command import find_user
from delivery.management.table import table
from delivery.window import zone_of
from reminders.calendar.next_firings import Firing, grouped, next_firings, rhythm
from reminders.models import Reminder

HEADER = ("When", "Then", "Reminder", "Owner", "To", "How often")
EACH = 3  # moments of a reminder in one line


class Command(BaseCommand):
    help = (
        "Say what fires next: when in its own zone, what, whose, to how many. Of one reminder, each moment."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("reminder", nargs="?", type=int, help="Only this reminder, by its number.")
        parser.add_argument("--most", type=int, default=20, help="How many lines to list; 20 unless told.")
        parser.add_argument("--as", dest="user", help="Only what this user sees.")
        takes_json(parser)

    def handle(self, *_: Any, **options: Any) -> None:
        if options["most"] < 1:
            raise CommandError("--most has to be at least 1.", returncode=2)
        chosen, most = self.chosen(options), options["most"]
        if options["reminder"] is not None:  # its moments one by one
            groups = [[firing] for firing in next_firings(chosen, most=most)]
        else:
            groups = grouped(chosen, most=most, each=EACH)
        reached = _reached(groups)
        text = "\n".join(table(HEADER, rows(groups, reached))) if groups else "Nothing is scheduled."
        say(self, options, text, facts(groups, reached))

    def chosen(self, options: dict[str, Any]) -> QuerySet[Reminder]:
        reminders: QuerySet[Reminder] = Reminder.objects.select_related("owner")
        if (user := find_user(options["user"])) is not None:
            reminders = visible(reminders, user)
        if options["reminder"] is None:
            return reminders
        if not reminders.filter(pk=options["reminder"]).exists():
            raise CommandError(f"There is no reminder {options['reminder']}.", returncode=2)
        return reminders.filter(pk=options["reminder"])


def rows(groups: list[list[Firing]], reached: dict[int, str]) -> list[tuple[str, ...]]:
    return [
        (
            f"{_local(first):%a %Y-%m-%d %H:%M} {first.reminder.zone}",
            ", ".join(f"{_local(firing):%a %H:%M}" for firing in later),
            f"{first.reminder.pk} {first.reminder}",
            str(first.reminder.owner),
            reached[first.reminder.pk],
            rhythm(first.reminder),
        )
        for first, *later in groups
    ]


def facts(groups: list[list[Firing]], reached: dict[int, str]) -> list[dict[str, object]]:
    """Return the groups for programs."""
    return [
        {
            "reminder": first.reminder.pk,
            "name": str(first.reminder),
            "owner": str(first.reminder.owner),
            "zone": first.reminder.zone,
            "moments": [firing.at for firing in (first, *later)],
            "to": reached[first.reminder.pk],
            "how_often": rhythm(first.reminder),
        }
        for first, *later in groups
    ]


def _local(firing: Firing) -> datetime:
    return firing.at.astimezone(zone_of(firing.reminder.zone))


def _reached(groups: list[list[Firing]]) -> dict[int, str]:
    return {
        reminder.pk: _reach(reminder)
        for reminder in {first.reminder.pk: first.reminder for first, *_ in groups}.values()
    }


def _reach(reminder: Reminder) -> str:
    accounts = reminder.reminder_accounts.filter(account__archived_at=None).order_by("position", "id")
    return audience.count(reminder.pk, list(accounts.values_list("account_id", flat=True))).words
