"""The base of the commands that change a run: find it, check whose it is, change it, print the result."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts.models import User
from delivery import live
from delivery.management.output import say, takes_json
from delivery.models import Run
from delivery.run_actions import Action, Question, perform
from delivery.sentences import run_summary


class RunCommand(BaseCommand):
    """The base of a run command. Exit codes: 0 done, 1 wrong state or not yours, 2 no such run or user."""

    action: Action[Run]

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("run", type=int, help="The run's number, as the pages show it.")
        parser.add_argument("--as", dest="user", help="On behalf of this user, who must be allowed to do it.")
        takes_json(parser)
        if self.action.gives_up:
            parser.add_argument("--yes", action="store_true", help="Confirm that messages are not sent.")
            parser.add_argument(
                "--name", default="", help="The run's name, to confirm that many messages are not sent."
            )

    def handle(self, *_: Any, **options: Any) -> None:
        run = find_run(options["run"])
        by = find_user(options["user"])
        said = {"typed": options.get("name", "")} | ({"confirmed": "1"} if options.get("yes") else {})
        found = perform(self.action, [run], by=by, said=said)
        if isinstance(found, Question):
            raise CommandError(_asked(found, options["name"]), returncode=1)
        if found.refused:
            raise CommandError("\n".join(found.refused), returncode=1)
        live.flush()
        if not options["json"]:
            self.stdout.write(found.told)
        say(self, options, describe(run), facts(run))


def find_run(run_id: int) -> Run:
    run = Run.objects.filter(pk=run_id).first()
    if run is None:
        raise CommandError(f"There is no run {run_id}. The Activity page lists all runs.", returncode=2)
    return run


def find_user(username: str | None) -> User | None:
    if username is None:
        return None
    user = User.objects.filter(username=username).first()
    if user is None:
        raise CommandError(f"There is no user {username}.", returncode=2)
    return user


def describe(run: Run) -> str:
    """Return the state and the numbers of a run in a few lines."""
    run.refresh_from_db()
    state = run.shown_status
    waiting = [f"{getattr(run, name):,} {name}" for name in ("sending", "pending") if getattr(run, name)]
    counts = ", ".join([run_summary.delivered(run), *run_summary.rest(run), *waiting])
    reason = f" ({run.pause_reason.replace('_', ' ')})" if run.pause_reason else ""
    lines = [f"Run {run.pk}, {run.name}: {state}{reason}; {counts}."]
    if run.opens_at:
        lines.append(f"It continues at {run.opens_at:%Y-%m-%d %H:%M} UTC.")
    if besides := _besides_the_counts(run):
        lines.append(besides)
    return "\n".join(lines)


def _besides_the_counts(run: Run) -> str:
    """Return the summary without the numbers that the first line has already."""
    summary = run.summary
    for told in (run_summary.finished(run), run_summary.progress(run)):
        summary = summary.replace(told, "")
    return " ".join(summary.split())


def facts(run: Run) -> dict[str, object]:
    """Return the state and the numbers of a run for programs."""
    run.refresh_from_db()
    counts = ("total", "sent", "failed", "skipped", "left_out", "unconfirmed", "sending", "pending")
    moments = ("fired_at", "started_at", "opens_at", "closes_at", "undo_until", "finished_at", "canceled_at")
    return {
        "run": run.pk,
        "reminder": run.reminder_id,
        "name": run.name,
        "status": run.shown_status,
        "pause_reason": run.pause_reason,
        "summary": run.summary,
        **{name: getattr(run, name) for name in counts + moments},
    }


def _asked(question: Question, typed: str) -> str:
    """Return the question of an action, with the options that confirm it."""
    lines = [question.title, question.sentence]
    if question.phrase and typed:
        lines.append(question.mismatch)
    named = f' --name "{question.phrase}"' if question.phrase else ""
    return "\n".join([*lines, f"To confirm, repeat the command with --yes{named}."])
