from typing import Any

from django.core.exceptions import PermissionDenied
from django.core.management.base import BaseCommand, CommandError, CommandParser

from delivery import live
from delivery.fanout import NothingToSendError
from delivery.lifecycle import WrongStateError
from delivery.management.run_command import describe, find_user
from reminders.fire import fire
from reminders.models import Reminder


class Command(BaseCommand):
    help = "Fire a reminder now. It is delivered inside its window."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("reminder", type=int, help="The reminder's number, as the pages show it.")
        parser.add_argument("--as", dest="user", help="On behalf of this user, who must be allowed to.")

    def handle(self, *_: Any, **options: Any) -> None:
        reminder = Reminder.objects.filter(pk=options["reminder"]).first()
        if reminder is None:
            raise CommandError(f"There is no reminder {options['reminder']}.", returncode=2)
        try:
            run = fire(reminder, by=find_user(options["user"]))
        except (NothingToSendError, WrongStateError, PermissionDenied) as error:
            raise CommandError(str(error), returncode=1) from error
        live.flush()
        self.stdout.write(describe(run))
