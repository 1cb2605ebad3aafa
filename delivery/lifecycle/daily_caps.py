"""What a daily cap that is reached does to a run, and how it goes on after that (SPEC P10, W6)."""

from datetime import datetime

from django.db import transaction
from django.utils import timezone

from accounts.models import Account
from delivery import full_days, summary
from delivery.lifecycle.holding import hold
from delivery.lifecycle.locking import locked
from delivery.models import Run, RunTarget
from delivery.states import PauseReason, RunStatus, TargetStatus


def end_full_days(account: Account) -> None:
    """Pause the runs that daily caps leave nothing to send before their window closes, rather than wait for that."""
    for run in full_days.over_for_today(account):
        _end_full_day(run)


@transaction.atomic
def _end_full_day(run: Run) -> None:
    """What is left is planned for later days: as when the window closes, and W6 says who resumes it."""
    run = locked(run)
    first = full_days.first_planned(run)
    if run.status != RunStatus.RUNNING or run.sending or run.closes_at is None or first is None:
        return
    full = full_days.full_accounts(run, now=timezone.now())
    if full and first >= run.closes_at:
        run.opens_at = first if run.resumes_by_itself else None
        why = summary.day_full(run, full, first=first)
        hold(run, PauseReason.DAILY_CAP, why, opens_at=run.opens_at)


def ready_at(run: Run) -> datetime:
    """From when on a run that is resumed may send.

    After a full day: at once where a cap was raised since, else as it was planned.
    """
    now = timezone.now()
    if run.pause_reason != PauseReason.DAILY_CAP:
        return now
    if full_days.full_accounts(run, now=now):
        return full_days.first_planned(run) or now
    planned = RunTarget.objects.filter(run=run, status=TargetStatus.PENDING, attempts=0, not_before__gt=now)
    planned.update(not_before=now)
    return now
