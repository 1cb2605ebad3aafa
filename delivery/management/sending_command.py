"""The base of the two commands that stop and start all sending."""

from collections.abc import Callable
from typing import Any

from django.core.exceptions import PermissionDenied
from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts.models import User
from delivery.management.output import takes_json
from delivery.management.run_command import find_user


class SendingCommand(BaseCommand):
    """The base of a sending command. Exit codes: 0 done, or nothing to do; 1 not allowed; 2 no such user."""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--owner", help="Only what belongs to this user; without it, everybody's.")
        parser.add_argument("--as", dest="user", help="On behalf of this user, who must be allowed to.")
        takes_json(parser)

    def turn(self, move: Callable[..., bool], options: dict[str, Any], **more: Any) -> tuple[bool, str]:
        """Stop or start; return whether something changed, and whose sending it is."""
        owner: User | None = find_user(options["owner"])
        try:
            changed = move(owner, by=find_user(options["user"]), **more)
        except PermissionDenied as error:
            raise CommandError(str(error), returncode=1) from error
        return changed, f"Sending of {owner}" if owner else "All sending"
