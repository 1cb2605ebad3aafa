"""Pauses a run whose daily cap is reached, and decides when it continues (SPEC P10, W6)."""

from datetime import datetime

from django.db import transaction
from django.utils import timezone

from accounts.models import Account
from delivery.lifecycle.steps import hold, locked
from delivery.limits import full_days
from delivery.models import Run, RunTarget
from delivery.sentences import run_summary
from delivery.states import PauseReason, RunStatus, TargetStatus


def end_full_days(account: Account) -> None:
    """Pause runs that daily caps leave nothing to send before their window closes, without waiting for the close."""
    for run in full_days.over_for_today(account):
        _end_full_day(run)


@transaction.atomic
def _end_full_day(run: Run) -> None:
    """Pause one run. The rest is planned for later days, as when the window closes; W6 says who resumes it."""
    run = locked(run)
    first = full_days.first_planned(run)
    if run.status != RunStatus.RUNNING or run.sending or run.closes_at is None or first is None:
        return
    full = full_days.full_accounts(run, now=timezone.now())
    if full and first >= run.closes_at:
        run.opens_at = first if run.resumes_by_itself else None
        why = run_summary.day_full(run, full, first=first)
        hold(run, PauseReason.DAILY_CAP, why, opens_at=run.opens_at)


def ready_at(run: Run) -> datetime:
    """Return from when on a resumed run may send.

    After a full day this is at once where a cap was raised since, else as it was planned.
    """
    now = timezone.now()
    if run.pause_reason != PauseReason.DAILY_CAP:
        return now
    if full_days.full_accounts(run, now=now):
        return full_days.first_planned(run) or now
    if not run.on_time_first:  # items that were planned by a person or a source stay at their times
        planned = RunTarget.objects.filter(
            run=run, status=TargetStatus.PENDING, attempts=0, not_before__gt=now
        )
        planned.update(not_before=now)
    return now
