import json
from typing import Any

from django.core.exceptions import PermissionDenied
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.core.serializers.json import DjangoJSONEncoder

from accounts.models import Recipient
from activity.privacy.erase import NotErasableError, erase
from activity.privacy.export import export
from delivery.management.output import say, takes_json
from delivery.management.run_command import find_user


class Command(BaseCommand):
    """Export or erase one person. Exit codes: 0 done, 1 not possible or not confirmed, 2 no such recipient or user."""

    help = "Print everything about a recipient as JSON, or erase it with --erase --yes."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "recipient", type=int, help="The number of the recipient, as in its page's address."
        )
        parser.add_argument("--erase", action="store_true", help="Erase everything about this person.")
        parser.add_argument("--yes", action="store_true", help="Confirm that it cannot be undone.")
        parser.add_argument("--as", dest="user", help="On behalf of this user, who must be allowed to do it.")
        takes_json(parser)

    def handle(self, *_: Any, **options: Any) -> None:
        recipient, by = _found(options["recipient"]), find_user(options["user"])
        if not options["erase"]:
            found = export(recipient, by=by)
            self.stdout.write(json.dumps(found, cls=DjangoJSONEncoder, indent=2, ensure_ascii=False))
            return
        if not options["yes"]:
            asked = f"Erase {recipient}? This cannot be undone. Repeat the command with --yes."
            raise CommandError(asked, returncode=1)
        try:
            counts = erase(recipient, by=by)
        except (NotErasableError, PermissionDenied) as error:
            raise CommandError(str(error), returncode=1) from error
        text = f"Recipient {recipient.pk} was erased. Nothing is sent to the address any more."
        say(self, options, text, {"recipient": recipient.pk, "erased": counts})


def _found(number: int) -> Recipient:
    recipient = Recipient.objects.filter(pk=number).first()
    if recipient is None:
        raise CommandError(f"There is no recipient {number}.", returncode=2)
    return recipient
