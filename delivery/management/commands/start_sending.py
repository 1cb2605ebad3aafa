from typing import Any

from django.conf import settings

from delivery.management.output import say
from delivery.management.sending_command import SendingCommand
from delivery.recovery import stop_sending


class Command(SendingCommand):
    help = "Start sending again after a stop, for everybody or for one owner."

    def handle(self, *_: Any, **options: Any) -> None:
        changed, whose = self.turn(stop_sending.start, options)
        text = f"{whose} continues." if changed else f"{whose} was not stopped."
        say(self, options, text, {"changed": changed, "sending": settings.SENDING})
        if not settings.SENDING and not options["json"]:
            self.stdout.write(
                "Workers that run with SENDING=off still send nothing: unset it and restart them."
            )
