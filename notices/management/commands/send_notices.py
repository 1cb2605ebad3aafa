"""Passes notifications on and sends what is due, once, in this process."""

from random import Random
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.utils import timezone

from delivery.management.output import as_json, takes_json
from notices import deliver, dispatch, escalate, spread


class Command(BaseCommand):
    """1. Tell of runs that wait for a person too long.
    2. Pass new notifications on to team members and addresses.
    3. Send each address what is due. Addresses that a worker has at the moment are left to it.
    """

    help = "Pass notifications on and send what is due to e-mail and chat addresses. Workers do this by themselves."

    def add_arguments(self, parser: CommandParser) -> None:
        takes_json(parser)

    def handle(self, *_: Any, **options: Any) -> None:
        told = {"told_again": escalate.escalate(timezone.now()), "passed_on": 0, "sent": 0, "failed": 0}
        while found := spread.spread():
            told["passed_on"] += found
        while taken := dispatch.take():
            for address_id in taken:
                told["sent" if deliver.serve(address_id, rng=Random()) else "failed"] += 1
        if options["json"]:
            self.stdout.write(as_json(told))
            return
        self.stdout.write(
            f"{told['told_again']} told again, {told['passed_on']} notifications passed on, "
            f"{told['sent']} messages sent, {told['failed']} not sent."
        )
