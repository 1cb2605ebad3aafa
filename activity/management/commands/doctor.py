"""`manage.py doctor`: the checks of /readyz for a person, with what to do about each."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from activity.health.check import Check
from activity.health.readiness import probe
from delivery.management.output import as_json, takes_json
from delivery.transports.networks.allowed import hint

WHAT_TO_DO = {
    "database": "Start PostgreSQL or correct DATABASE_URL; without that setting, `make run` starts one.",
    "redis": "Start Redis or correct REDIS_URL; without that setting, `make run` starts one.",
    "worker": "Start a worker (`make run`, or the line `worker` of the Procfile); its log says why it ended.",
    "beat": "Start beat (`make run`, or the line `beat` of the Procfile); without it nothing fires or wakes.",
    "clocks": "Let NTP (chrony, systemd-timesyncd) set the clocks of all machines; nothing is sent until they agree.",
    "shares": "Start a worker for every share: ACCOUNT_SHARE=1/n to n/n, the same n on all of them.",
    "wake_ups": "Look at the logs of beat and the workers: they are too few, stand still, or cannot reach Redis.",
    "media": "Give all web and worker processes the same folder as MEDIA_ROOT, on a disk that they share, or the same "
    "MEDIA_BUCKET.",
    "ledger": "Nothing is lost. Beat makes the tables every ten minutes, unless somebody reads the ledger for long: "
    "run `manage.py ledger_months`, which says what is in the way.",
}


class Command(BaseCommand):
    """Prints a line per check, and for each failed check its cause and remedy. The exit code is 1 if any fails."""

    help = (
        "Says whether servers, workers, beat and clocks work and all work is served, and what to do if not."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        takes_json(parser)

    def handle(self, *_: Any, **options: Any) -> None:
        health = probe()
        if options["json"]:
            checks = [{"name": each.name, "ok": each.ok, "detail": each.detail} for each in health.checks]
            self.stdout.write(as_json({"ok": health.ok, "checks": checks}))
            if not health.ok:
                raise CommandError("Not ready.")
            return
        for check in health.checks:
            self._print(check)
        if words := hint(settings.PRIVATE_NETWORKS, chosen=settings.PRIVATE_NETWORKS_CHOSEN):
            self.stdout.write(f"{self.style.WARNING('note')} {words}")
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
        if check.name in WHAT_TO_DO:
            self.stdout.write(f"     {WHAT_TO_DO[check.name]}")
