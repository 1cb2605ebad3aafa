"""The runs of a queue: one for each account, priority and form of message, and a new one every day.

An account's items are in a run of their own, so that an account that stops keeps no other from sending.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.utils import timezone

from accounts.models import Account
from delivery import items
from delivery.models import Run, RunAccount, RunQuerySet
from delivery.states import OPEN_RUN
from queues.models import Queue

OPEN_FOR = timedelta(
    hours=24
)  # a run takes further items, so that runs neither grow for ever nor become many
NAME_LENGTH = 120
OWN_TEXT = "Each item has a text of its own."


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """The priority, the kinds of parts, and the planning that all items of one run have."""

    kinds: tuple[str, ...]
    priority: int = 0
    planned: bool = False
    from_template: bool = False


def runs_of(queue: Queue) -> RunQuerySet:
    """Return all runs of a queue."""
    return Run.objects.filter(reminder=queue.carrier_id)


def form_of(run: Run) -> tuple[int, tuple[str, ...], bool]:
    """Return what the items of a run have in common: its priority, the kinds of parts, and whether they are planned."""
    return run.priority, tuple(part["kind"] for part in run.parts), run.on_time_first


@dataclass(slots=True, kw_only=True)
class OpenRuns:
    """The runs of a queue that take items, and others that are changed with them; all are locked in one order."""

    queue: Queue
    runs: dict[int, Run]
    accounts: dict[int, set[int]]

    def run_for(self, account: Account, form: Form) -> Run:
        """Return the run that takes such an item of an account; made if there is none."""
        wanted, since = _new(self.queue, account, form), timezone.now() - OPEN_FOR
        for run in reversed(self.runs.values()):
            if (
                run.fired_at > since
                and run.status in OPEN_RUN
                and run.canceled_at is None
                and self.accounts.get(run.pk) == {account.pk}
                and all(getattr(run, name) == getattr(wanted, name) for name in SAME)
            ):
                return run
        made = items.make(wanted, account.pk)
        self.runs[made.pk], self.accounts[made.pk] = made, {account.pk}
        return made


SAME = ("reminder_id", "priority", "on_time_first", "action", "parts", "subject")


def lock_open(queue: Queue, also: Iterable[int] = ()) -> OpenRuns:
    """Lock the queue's runs that take items, and the runs in `also`. The caller has locked the queue."""
    taking = runs_of(queue).open().filter(canceled_at=None, fired_at__gt=timezone.now() - OPEN_FOR)
    locked = items.lock_runs({*taking.values_list("pk", flat=True), *also})
    accounts: dict[int, set[int]] = {}
    shares = RunAccount.objects.filter(run__in=locked).values_list("run_id", "account_id")
    for run_id, account_id in shares:
        accounts.setdefault(run_id, set()).add(account_id)
    return OpenRuns(queue=queue, runs=locked, accounts=accounts)


def _new(queue: Queue, account: Account, form: Form) -> Run:
    return Run(
        reminder_id=queue.carrier_id,
        owner_id=queue.owner_id,
        kind=Run.Kind.QUEUE,
        fired_at=timezone.now(),
        name=f"{queue.name}: {account}"[:NAME_LENGTH],
        action=queue.action,
        subject=queue.subject if form.from_template else "",
        parts=_parts(queue, form),
        zone=queue.zone,
        window_start_hour=queue.window_start_hour,
        window_end_hour=queue.window_end_hour,
        send_days=queue.send_days,
        resumes_by_itself=True,
        priority=queue.priority + form.priority,
        on_time_first=form.planned,
    )


def _parts(queue: Queue, form: Form) -> Sequence[dict[str, Any]]:
    """Return the parts that items without own ones say; for the others only their number and kinds matter."""
    if form.from_template:
        return [{"kind": "text", "text": queue.text}]
    return [{"kind": kind, "text": OWN_TEXT} for kind in form.kinds]
