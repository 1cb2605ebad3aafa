from typing import Any

from django.core.management.base import CommandParser

from delivery.management.output import say
from delivery.management.sending_command import SendingCommand
from delivery.recovery import stop_sending


class Command(SendingCommand):
    help = "Stop all sending, or that of one owner, before the next message leaves. It stays stopped over restarts."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--reason", default="", help="Why: shown on every page while it is stopped.")

    def handle(self, *_: Any, **options: Any) -> None:
        changed, whose = self.turn(stop_sending.stop, options, reason=options["reason"])
        text = f"{whose} is stopped{'' if changed else ' already'}. `start_sending` starts it again."
        say(self, options, text, {"changed": changed, "stopped": True})
