"""Prints a pair of keys for web push, as lines for the environment."""

from typing import Any

from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from django.core.management.base import BaseCommand, CommandParser
from py_vapid import Vapid
from py_vapid.utils import b64urlencode

from delivery.management.output import say, takes_json


class Command(BaseCommand):
    """Needs neither the database nor the other settings to be right."""

    help = "Print a new pair of VAPID keys. Browsers subscribe to the public one, so that it stays as it is."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        takes_json(parser)

    def handle(self, *_: Any, **options: Any) -> None:
        pair = Vapid()
        pair.generate_keys()
        private = pair.private_key.private_numbers().private_value.to_bytes(32, "big")
        public = pair.public_key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
        keys = {"VAPID_PUBLIC_KEY": b64urlencode(public), "VAPID_PRIVATE_KEY": b64urlencode(private)}
        say(self, options, "\n".join(f"{name}={key}" for name, key in keys.items()), keys)
