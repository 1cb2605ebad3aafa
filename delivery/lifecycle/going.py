"""How a run goes on: now or when its window opens, and its accounts are woken."""

from collections.abc import Sequence
from datetime import datetime

from django.utils import timezone

from accounts.models import Account
from delivery import queues
from delivery.inbound import first_contacts
from delivery.lifecycle.holding import state_of, stop_for, stopped_accounts
from delivery.lifecycle.locking import require
from delivery.lifecycle.telling import announce_later
from delivery.models import Run, RunAccount
from delivery.send_days import days_of
from delivery.states import RunStatus, TargetStatus
from delivery.window import Window, last_close, opens_at

SETTING_OUT = (
    *("status", "opens_at", "closes_at", "started_at", "summary"),
    *("total", "pending", "skipped", "left_out"),
)


def window_of(run: Run) -> Window:
    days = days_of(run.send_days)
    return Window(start_hour=run.window_start_hour, end_hour=run.window_end_hour, days=days, zone=run.zone)


def go_on(run: Run, *, ready_at: datetime | None = None) -> None:
    """Run now if the window is open, else when it opens next; not before it is ready."""
    set_out(run, timezone.now(), ready_at=ready_at)
    run.save()
    RunAccount.objects.filter(run=run).update(open=True)
    serve([run])
    announce_later(run)


def set_out(run: Run, now: datetime, *, ready_at: datetime | None = None) -> None:
    window = window_of(run)
    opening = opens_at(window, max(now, ready_at or now))
    status = RunStatus.RUNNING if opening <= now else RunStatus.QUEUED
    require(run, status, "It cannot go on.")
    run.status, run.pause_reason, run.summary = status, "", ""
    run.closes_at = last_close(window, opening)
    run.opens_at = None if status is RunStatus.RUNNING else opening
    if status is RunStatus.RUNNING:
        run.started_at = run.started_at or now


def serve(runs: Sequence[Run]) -> None:
    """Wake the accounts of the runs that go. A run that an account cannot serve pauses."""
    running = [run for run in runs if run.status == RunStatus.RUNNING]
    shares = list(RunAccount.objects.filter(run__in=running).values_list("run_id", "account_id"))
    if not shares:
        return
    accounts = {account_id for _, account_id in shares}
    queues.wake_on_commit(accounts)
    # Asked only now: the accounts are locked, so none of them stops or is locked unseen.
    first_contacts.hold([run.pk for run in running])
    stopped = set(
        Account.objects.filter(pk__in=accounts)
        .exclude(status=Account.Status.ACTIVE, archived_at=None)
        .values_list("pk", flat=True)
    )
    held = {run_id for run_id, account_id in shares if account_id in stopped}
    for run in running:
        for account in stopped_accounts(run, TargetStatus.PENDING)[:1] if run.pk in held else ():
            stop_for(run, account, account.status_reason or state_of(account))
