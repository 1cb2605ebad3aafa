from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db.models import QuerySet

from accounts.roles import visible
from delivery import audience
from delivery.management.run_command import find_user
from delivery.management.table import table
from delivery.window import zone_of
from reminders.models import Reminder
from reminders.next_firings import Firing, next_firings, rhythm

HEADER = ("When", "Reminder", "Owner", "To", "How often")


class Command(BaseCommand):
    help = "Say what fires next: when in its own zone, what, whose, to how many."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("reminder", nargs="?", type=int, help="Only this reminder, by its number.")
        parser.add_argument("--most", type=int, default=20, help="How many firings to list; 20 unless told.")
        parser.add_argument("--as", dest="user", help="Only what this user sees.")

    def handle(self, *_: Any, **options: Any) -> None:
        if options["most"] < 1:
            raise CommandError("--most has to be at least 1.", returncode=2)
        firings = next_firings(self.chosen(options), most=options["most"])
        if not firings:
            self.stdout.write("Nothing is scheduled.")
            return
        self.stdout.write("\n".join(table(HEADER, rows(firings))))

    def chosen(self, options: dict[str, Any]) -> QuerySet[Reminder]:
        reminders: QuerySet[Reminder] = Reminder.objects.select_related("owner")
        if (user := find_user(options["user"])) is not None:
            reminders = visible(reminders, user)
        if options["reminder"] is None:
            return reminders
        if not reminders.filter(pk=options["reminder"]).exists():
            raise CommandError(f"There is no reminder {options['reminder']}.", returncode=2)
        return reminders.filter(pk=options["reminder"])


def rows(firings: list[Firing]) -> list[tuple[str, ...]]:
    reached = {firing.reminder.pk: _reach(firing.reminder) for firing in firings}
    return [
        (
            f"{firing.at.astimezone(zone_of(firing.reminder.zone)):%a %Y-%m-%d %H:%M} {firing.reminder.zone}",
            f"{firing.reminder.pk} {firing.reminder}",
            str(firing.reminder.owner),
            reached[firing.reminder.pk],
            rhythm(firing.reminder),
        )
        for firing in firings
    ]


def _reach(reminder: Reminder) -> str:
    accounts = reminder.reminder_accounts.filter(account__archived_at=None).order_by("position", "id")
    return audience.count(reminder.pk, list(accounts.values_list("account_id", flat=True))).words
