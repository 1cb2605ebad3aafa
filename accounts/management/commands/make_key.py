"""Prints a new key for ENCRYPTION_KEY."""

from typing import Any

from cryptography.fernet import Fernet
from django.core.management.base import BaseCommand


class Command(BaseCommand):
    """Needs neither the database nor the other settings to be right."""

    help = "Print a new key for ENCRYPTION_KEY. Put it in front of the old ones, then run rotate_keys."
    requires_system_checks = []

    def handle(self, *_: Any, **__: Any) -> None:
        self.stdout.write(Fernet.generate_key().decode())
