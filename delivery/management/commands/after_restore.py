from datetime import UTC, datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from accounts.models import SendingStop
from audit.record import record
from delivery import live
from delivery.management.output import say, takes_json
from delivery.recovery import stop_sending
from delivery.recovery.after_restore import Gap, doubt, find


class Command(BaseCommand):
    """Make messages of the gap unconfirmed. Exit codes: 0 done, 1 sending is not stopped, 2 a time is wrong."""

    help = "After a restore: mark messages as unconfirmed that may have been sent after the backup was made."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--since",
            help='From when the restored data is: "2026-11-18 10:00", in UTC; without it, what `restore` noted.',
        )
        parser.add_argument("--until", help="When the last message may have left; without it, now.")
        takes_json(parser)
        parser.add_argument(
            "--nothing-was-sent", action="store_true", help="Decide that nothing was sent in the gap."
        )
        parser.add_argument("--apply", action="store_true", help="Do it; without this, it is only listed.")

    def handle(self, *_: Any, **options: Any) -> None:
        gap = _gap(options)
        if gap.until <= gap.since:
            raise CommandError("The gap must end after it began.", returncode=2)
        if not SendingStop.objects.filter(owner=None, ended_at=None).exists():
            raise CommandError("Sending is not stopped: run `manage.py stop_sending` first.", returncode=1)
        if options["nothing_was_sent"]:
            stop_sending.decided()
            record("sending.decided", after={"since": gap.since, "until": gap.until, "sent": "nothing"})
            say(self, options, "Noted: nothing was sent in the gap.", {"applied": False, "runs": []})
            return
        count, told = 0, []
        for found in list(find(gap)):
            count += len(found.targets)
            told.append({"run": found.run.pk, "account": found.account.pk, "messages": len(found.targets)})
            if not options["json"]:
                words = f"Run {found.run.pk}, {found.run.name}, from {found.account}: {len(found.targets):,}"
                self.stdout.write(words)
            if options["apply"]:
                doubt(found, gap)
                live.run_changed(found.run.pk, found.run.owner_id)
        if options["apply"]:
            stop_sending.decided()
            record("sending.decided", after={"since": gap.since, "until": gap.until, "unconfirmed": count})
        live.flush()
        end = "are unconfirmed now." if options["apply"] else "would become unconfirmed: --apply does it."
        text = f"{count:,} that may have been sent in the gap {end}" if count else "Nothing is in doubt."
        say(self, options, text, {"applied": options["apply"], "runs": told})


def _gap(options: dict[str, Any]) -> Gap:
    """Return the gap that was named, or that a restore noted."""
    noted = stop_sending.waits_for_decision()
    since = _moment(options["since"]) if options["since"] else noted.restored_to if noted else None
    if since is None:
        raise CommandError("Name the moment of the restored data with --since.", returncode=2)
    until = noted.stopped_at if noted and not options["since"] else timezone.now()
    return Gap(since=since, until=_moment(options["until"]) if options["until"] else until)


def _moment(text: str) -> datetime:
    try:
        found = parse_datetime(text)
    except ValueError:
        found = None
    if found is None:
        raise CommandError(f'{text!r} is not a time: write it as "2026-11-18 10:00", in UTC.', returncode=2)
    return found if found.tzinfo else found.replace(tzinfo=UTC)
