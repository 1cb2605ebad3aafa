"""`manage.py doctor`: what /readyz says, for a person, with what to do about it."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from activity.health import Check, probe

WHAT_TO_DO = {
    "database": "Start PostgreSQL or correct DATABASE_URL; without that setting, `make run` starts one.",
    "redis": "Start Redis or correct REDIS_URL; without that setting, `make run` starts one.",
    "worker": "Start a worker (`make run`, or the line `worker` of the Procfile); its log says why it ended.",
    "beat": "Start beat (`make run`, or the line `beat` of the Procfile); without it nothing fires or wakes.",
}


class Command(BaseCommand):
    """Prints a line per check, and for each that fails its cause and remedy; exit code 1 if any fails."""

    help = "Says whether the database, Redis, a worker and beat work, and what to do if one does not."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ARG002
        health = probe()
        for check in health.checks:
            self._print(check)
        if not health.ok:
            failing = ", ".join(check.name for check in health.checks if not check.ok)
            raise CommandError(f"Not ready: {failing}.")
        self.stdout.write(self.style.SUCCESS("Everything works."))

    def _print(self, check: Check) -> None:
        if check.ok:
            self.stdout.write(f"{self.style.SUCCESS('ok  ')} {check.name}: {check.detail}")
            return
        self.stdout.write(f"{self.style.ERROR('FAIL')} {check.name}: {check.detail}")
        if check.cause:
            self.stdout.write(f"     {check.cause}")
        self.stdout.write(f"     {WHAT_TO_DO[check.name]}")
