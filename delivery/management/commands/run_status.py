import time
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.db import connection

from delivery.management.output import say, takes_json
from delivery.management.run_command import describe, facts, find_run
from delivery.models import Run
from delivery.states import SETTLED_RUN

WIDTH = 40


class Command(BaseCommand):
    help = "Show the progress of a run; with --watch, as a live bar until the run pauses or ends."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("run", type=int)
        parser.add_argument("--watch", action="store_true")
        takes_json(parser)
        parser.add_argument("--every", type=float, default=1.0, help="Seconds between two updates.")

    def handle(self, *_: Any, **options: Any) -> None:
        run = find_run(options["run"])
        if options["watch"] and not options["json"]:
            self.watch(run, options["every"])
        say(self, options, describe(run), facts(run))

    def watch(self, run: Run, every: float) -> None:
        started, first = time.monotonic(), run.sent
        try:
            while run.status not in SETTLED_RUN and run.shown_status != "paused":
                rate = (run.sent - first) * 60 / max(time.monotonic() - started, 1)
                self.stdout.write(f"\r{bar(run)} {rate:.0f}/min ", ending="")
                self.stdout.flush()
                connection.close()
                time.sleep(every)
                run.refresh_from_db()
        except KeyboardInterrupt:
            self.stdout.write("")
            return
        self.stdout.write(f"\r{bar(run)}")


def bar(run: Run) -> str:
    """Return a bar that shows the settled share, followed by the numbers."""
    settled = run.expected - run.pending - run.sending
    filled = WIDTH * settled // run.expected if run.expected else WIDTH
    return f"[{'█' * filled}{'░' * (WIDTH - filled)}] {run.sent:,} of {run.expected:,} sent, {run.failed:,} failed"
