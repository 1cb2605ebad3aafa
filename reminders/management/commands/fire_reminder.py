from typing import Any

from django.core.exceptions import PermissionDenied
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from accounts.models import Approval
from delivery import live
from delivery.fanout import NothingToSendError
from delivery.lifecycle import WrongStateError
from delivery.management.output import say, takes_json
from delivery.management.run_command import describe, facts, find_user
from reminders.by_hand.last_look import EVERYONE, REST, LastLook, last_look
from reminders.by_hand.send import send
from reminders.models import Reminder


class Command(BaseCommand):
    help = "Fire a reminder now. It is delivered inside its window."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("reminder", type=int, help="The reminder's number, as the pages show it.")
        parser.add_argument("--as", dest="user", help="On behalf of this user, who must be allowed to.")
        takes_json(parser)
        parser.add_argument("--yes", action="store_true", help="Confirm that many people get it.")
        parser.add_argument("--without", action="store_true", help="Send without those who lack a value.")
        parser.add_argument(
            "--again",
            choices=(REST, EVERYONE),
            default="",
            help="Where people received it within a day: send to the rest, or to everyone again.",
        )

    def handle(self, *_: Any, **options: Any) -> None:
        reminder = Reminder.objects.filter(pk=options["reminder"]).first()
        if reminder is None:
            raise CommandError(f"There is no reminder {options['reminder']}.", returncode=2)
        try:
            found = send(reminder, by=find_user(options["user"]), said=_said(reminder, options))
        except (NothingToSendError, WrongStateError, PermissionDenied) as error:
            raise CommandError(str(error), returncode=1) from error
        if isinstance(found, LastLook):
            raise CommandError(_asked(found), returncode=1)
        if isinstance(found, Approval):
            text = f"Nothing is sent yet: it waits for approval (request {found.pk}). {found.why}"
            say(self, options, text, {"approval": found.pk, "why": found.why})
            return
        live.flush()
        say(self, options, describe(found), facts(found))
        if not options["json"] and found.may_be_undone and found.undo_until is not None:
            seconds = max(0, round((found.undo_until - timezone.now()).total_seconds()))
            self.stdout.write(f"It starts in {seconds} s. To take it back: cancel_run {found.pk}")


def _said(reminder: Reminder, options: dict[str, Any]) -> dict[str, str]:
    said = {"again": str(options["again"])} | ({"without": "1"} if options["without"] else {})
    if not options["yes"]:
        return said
    number = last_look(reminder, now=timezone.now()).audience.complete
    return said | {"confirmed": "1", "number": str(number)}


def _asked(look: LastLook) -> str:
    """Return what the person has to confirm, and with which options."""
    if look.why_not:
        return look.why_not
    options = [
        *(["--yes"] if look.large else []),
        *(["--without"] if look.audience.short else []),
        *([f"{'--again rest, or ' * look.repeat.left}--again everyone"] if look.repeat else []),
    ]
    return "\n".join([*look.sentences, f"To confirm, add: {' '.join(options)}"])
