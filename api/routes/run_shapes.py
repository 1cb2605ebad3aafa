"""Turns runs and targets into the shapes that answers show."""

from collections.abc import Sequence
from typing import Any
from zoneinfo import ZoneInfo

from django.utils import timezone

from api import leaving
from api.schemas.base import Leaving
from api.schemas.runs import RunDetail, RunShown, SenderShown, TargetShown
from delivery.models import Run, RunTarget
from delivery.progress import progress_of
from delivery.states import TargetStatus

COLUMNS = (
    *("kind", "name", "action", "status", "pause_reason", "summary", "zone"),
    *("fired_at", "due_at", "started_at", "finished_at", "archived_at"),
    *("total", "pending", "sending", "sent", "returned", "failed", "skipped", "unconfirmed", "left_out"),
)
TARGET_COLUMNS = (
    *("status", "not_before", "attempts", "parts_done", "error", "provider_id"),
    *("settled_at", "delivered_at", "read_at"),
    *("returned_at", "return_kind", "return_reason"),
)


def runs(found: Sequence[Run]) -> list[RunShown]:
    """Return runs as lists show them; their accounts are read together."""
    goes_on = leaving.of_runs(found, now=timezone.now())
    return [RunShown(**_facts(run), **goes_on[run.pk].model_dump()) for run in found]


def detail(run: Run) -> RunDetail:
    """Return one run with its progress, and the time of its next message from its forecast."""
    progress, now = progress_of(run), timezone.now()
    zone = ZoneInfo(run.zone)
    all_senders = None if progress.others else progress.senders
    senders = [
        SenderShown(account=sender.account.pk, name=sender.account.name, sentence=sender.why.text(now, zone))
        for sender in progress.senders
    ]
    return RunDetail(
        **_facts(run),
        **leaving.of_run(run, now=now, senders=all_senders).model_dump(),
        rate=round(progress.rate, 1),
        finishes_at=progress.finish_at,
        senders=senders,
    )


def targets(found: Sequence[RunTarget], goes_on: Leaving) -> list[TargetShown]:
    """Return the targets of one run; those that are pending leave when the run goes on."""
    return [_target(target, goes_on) for target in found]


def _target(target: RunTarget, goes_on: Leaving) -> TargetShown:
    waits = target.status == TargetStatus.PENDING
    leaves_at = goes_on.leaves_at and max(goes_on.leaves_at, target.not_before)
    planned = waits and goes_on.leaves_at is not None and target.not_before > goes_on.leaves_at
    return TargetShown(
        id=target.pk,
        run=target.run_id,
        recipient=target.recipient_id,
        address=target.recipient.address,
        account=target.account_id,
        **{name: getattr(target, name) for name in TARGET_COLUMNS},
        leaves_at=leaves_at if waits else None,
        waiting_for="not_before" if planned else goes_on.waiting_for if waits else "",
        sentence=goes_on.sentence if waits else target.error,
    )


def _facts(run: Run) -> dict[str, Any]:
    return {
        "id": run.pk,
        "owner": run.owner_id,
        "reminder": run.reminder_id,
        "canceling": run.being_canceled,
        **{name: getattr(run, name) for name in COLUMNS},
    }
