"""What the commands that steer a run share: find it, check whose it is, do it, say what came of it."""

from collections.abc import Callable
from typing import Any

from django.core.exceptions import PermissionDenied
from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts.models import User
from delivery import events, summary
from delivery.lifecycle import WrongStateError
from delivery.models import Run


class RunCommand(BaseCommand):
    """Exit codes: 0 done, 1 the run is in the wrong state or not yours, 2 there is no such run or user."""

    move: Callable[..., Run]

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("run", type=int, help="The run's number, as the pages show it.")
        parser.add_argument("--as", dest="user", help="On behalf of this user, who must be allowed to.")

    def handle(self, *_: Any, **options: Any) -> None:
        run = find_run(options["run"])
        by = find_user(options["user"])
        try:
            run = type(self).move(run, by=by)
        except (WrongStateError, PermissionDenied) as error:
            raise CommandError(str(error), returncode=1) from error
        events.flush()
        self.stdout.write(describe(run))


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
    run.refresh_from_db()
    waiting = [f"{getattr(run, name):,} {name}" for name in ("sending", "pending") if getattr(run, name)]
    counts = ", ".join([summary.delivered(run), *summary.rest(run), *waiting])
    reason = f" ({run.pause_reason.replace('_', ' ')})" if run.pause_reason else ""
    lines = [f"Run {run.pk}, {run.name}: {run.status}{reason}; {counts}."]
    if run.opens_at:
        lines.append(f"It goes on at {run.opens_at:%Y-%m-%d %H:%M} UTC.")
    if run.summary:
        lines.append(run.summary)
    return "\n".join(lines)
