"""The events of runs and accounts that webhooks are told, written in the transaction of the change."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from django.db.models import QuerySet

from accounts import outbox
from accounts.models import Account
from accounts.models.webhook import EventType
from accounts.outbox import Event
from delivery.lifecycle import item_events
from delivery.lifecycle.item_events import BATCH, batched
from delivery.models import Run, RunTarget
from delivery.states import RunStatus

COUNTS = ("total", "pending", "sending", "sent", "failed", "skipped", "unconfirmed", "left_out")
RESULT = (
    *("status", "error", "provider_id", "settled_at"),
    *("returned_at", "return_kind", "return_reason"),
)
TIMES = ("fired_at", "started_at", "finished_at", "opens_at")


def runs_made(runs: Sequence[Run]) -> None:
    """Follow the results of the recipients of new runs, also of those that end at once with everybody skipped."""
    outbox.follow_runs([(run.pk, run.owner_id, run.kind == Run.Kind.QUEUE) for run in runs])


def runs_started(runs: Sequence[Run]) -> None:
    """Tell of runs that were just made and send now. Those that wait are told when they begin (`run_goes_on`)."""
    outbox.emit_all([_event(run, EventType.RUN_STARTED) for run in runs if run.status == RunStatus.RUNNING])


def run_paused(run: Run) -> None:
    outbox.emit(_event(run, EventType.RUN_PAUSED))


def run_goes_on(run: Run, *, was: str, began: bool) -> None:
    """Tell of a run that sends again: `was` is its status before, `began` whether it had sent before.

    The first time is told as started, each later one as resumed. A run that only waits for its hours is not told.
    """
    runs_made([run])
    if run.status == RunStatus.RUNNING and was != RunStatus.RUNNING:
        outbox.emit(_event(run, EventType.RUN_RESUMED if began else EventType.RUN_STARTED))


def run_finished(run: Run) -> None:
    outbox.emit(_event(run, EventType.RUN_FINISHED))


def results_changed(targets: QuerySet[RunTarget]) -> None:
    """Tell results that changed without a message: what a person decided, and what came back. Their runs are locked."""
    item_events.items_changed(targets)
    if not outbox.is_wanted(EventType.RUN_TARGETS):
        return
    rows = targets.select_related("run").prefetch_related("recipient").order_by("run", "pk")
    for run_id, found in groupby(rows.iterator(chunk_size=BATCH), key=lambda target: target.run_id):
        for some in batched(found, BATCH):
            owner, data = some[0].run.owner_id, {"run": run_id, "targets": [result_of(each) for each in some]}
            outbox.emit(
                Event(owner_id=owner, type=EventType.RUN_TARGETS, data=data, sequence=sequence_of(run_id))
            )


def result_of(target: RunTarget) -> dict[str, Any]:
    """Return what is told of one recipient of a run."""
    return {
        "id": target.pk,
        "recipient": target.recipient_id,
        "address": target.recipient.address,
        "account": target.account_id,
        **{name: getattr(target, name) for name in RESULT},
    }


def account_changed(account: Account) -> None:
    """Tell of an account that stopped or started."""
    data = {
        "id": account.pk,
        "name": account.name,
        "channel": account.channel,
        "status": account.status,
        "reason": account.status_reason,
    }
    sequence = f"account:{account.pk}"
    outbox.emit(
        Event(owner_id=account.owner_id, type=EventType.ACCOUNT, data={"account": data}, sequence=sequence)
    )


def sequence_of(run_id: int) -> str:
    return f"run:{run_id}"


def _event(run: Run, type_: EventType) -> Event:
    data: dict[str, Any] = {
        "id": run.pk,
        "reminder": run.reminder_id,
        "kind": run.kind,
        "name": run.name,
        "status": run.status,
        "pause_reason": run.pause_reason,
        "summary": run.summary,
        **{name: getattr(run, name) for name in (*COUNTS, *TIMES)},
    }
    return Event(owner_id=run.owner_id, type=type_, data={"run": data}, sequence=sequence_of(run.pk))
