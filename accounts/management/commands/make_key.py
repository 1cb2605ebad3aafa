"""Prints a new key for ENCRYPTION_KEY."""

import json
from typing import Any

from cryptography.fernet import Fernet
from django.core.management.base import BaseCommand, CommandParser


class Command(BaseCommand):
    """Needs neither the database nor the other settings to be right."""

    help = "Print a new key for ENCRYPTION_KEY. Put it in front of the old ones, then run rotate_keys."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="Print JSON, for programs.")

    def handle(self, *_: Any, **options: Any) -> None:
        key = Fernet.generate_key().decode()
        self.stdout.write(json.dumps({"ENCRYPTION_KEY": key}) if options["json"] else key)
