"""A run that was just made goes, waits or is over."""

from collections.abc import Sequence

from django.db import transaction
from django.utils import timezone

from delivery import summary
from delivery.lifecycle.ending import finish, skip_pending
from delivery.lifecycle.going import SETTING_OUT, go_on, serve, set_out
from delivery.lifecycle.locking import locked
from delivery.lifecycle.telling import announce_later
from delivery.models import Run
from delivery.states import RunStatus


def start(runs: Sequence[Run]) -> None:
    """Runs that were just made go, each now or when its window opens. One statement for all, of each kind."""
    now = timezone.now()
    for run in runs:
        set_out(run, now)
    Run.objects.bulk_update(runs, SETTING_OUT)
    serve(runs)
    for run in runs:
        announce_later(run)


@transaction.atomic
def start_waiting(run: Run) -> Run:
    """The run that this one waited for has ended: go on."""
    run = locked(run)
    if run.status == RunStatus.QUEUED and run.opens_at is None:
        go_on(run)
    return run


def wait_behind(run: Run, ahead: int) -> None:
    """A run that was just made waits until the last run of its reminder has ended."""
    run.summary = summary.behind(ahead)
    run.save()
    announce_later(run)


def end_empty(run: Run) -> None:
    """A run that was just made and has nothing to send is over."""
    finish(run)


def miss(run: Run, why: str) -> None:
    """A run that was made too late: nothing of it is sent."""
    skip_pending(run, "fired after the delivery window")
    run.summary = why
    finish(run)
