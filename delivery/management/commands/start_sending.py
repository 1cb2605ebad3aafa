from typing import Any

from django.conf import settings

from delivery.management.sending_command import SendingCommand
from delivery.recovery import stop_sending


class Command(SendingCommand):
    help = "Start sending again after a stop, for everybody or for one owner."

    def handle(self, *_: Any, **options: Any) -> None:
        changed, whose = self.turn(stop_sending.start, options)
        self.stdout.write(f"{whose} continues." if changed else f"{whose} was not stopped.")
        if not settings.SENDING:
            self.stdout.write(
                "Workers that run with SENDING=off still send nothing: unset it and restart them."
            )
