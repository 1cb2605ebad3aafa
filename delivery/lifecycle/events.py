"""The events of runs and accounts that webhooks are told, written in the transaction of the change."""

from collections.abc import Sequence
from typing import Any

from accounts import outbox
from accounts.models import Account
from accounts.models.webhook import EventType
from accounts.outbox import Event
from delivery.models import Run

COUNTS = ("total", "pending", "sending", "sent", "failed", "skipped", "unconfirmed", "left_out")
TIMES = ("fired_at", "started_at", "finished_at", "opens_at")


def runs_made(runs: Sequence[Run]) -> None:
    """Follow the results of the recipients of new runs, also of those that end at once with everybody skipped."""
    outbox.follow_runs([(run.pk, run.owner_id) for run in runs])


def runs_started(runs: Sequence[Run]) -> None:
    """Tell of runs that were just made and can send."""
    outbox.emit_all([_event(run, EventType.RUN_STARTED) for run in runs])


def run_paused(run: Run) -> None:
    outbox.emit(_event(run, EventType.RUN_PAUSED))


def run_resumed(run: Run) -> None:
    outbox.follow_runs([(run.pk, run.owner_id)])
    outbox.emit(_event(run, EventType.RUN_RESUMED))


def run_finished(run: Run) -> None:
    outbox.emit(_event(run, EventType.RUN_FINISHED))


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
