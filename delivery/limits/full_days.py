"""Decides whether a run waits for daily caps (SPEC P10): asked before it is paused, and when it continues."""

from datetime import datetime

from django.db.models import Exists, OuterRef, QuerySet, Subquery

from accounts.models import Account
from delivery.limits.lookup import day_is_full
from delivery.models import Run, RunAccount, RunTarget
from delivery.states import RunStatus, TargetStatus


def first_planned(run: Run) -> datetime | None:
    """Return when the first of the run's pending targets is due; read account by account, as the index is."""
    pending = RunTarget.objects.filter(
        account=OuterRef("account"), run=OuterRef("run"), status=TargetStatus.PENDING
    )
    first = Subquery(pending.order_by("not_before", "id").values("not_before")[:1])
    moments = RunAccount.objects.filter(run=run).annotate(first=first).values_list("first", flat=True)
    return min((moment for moment in moments if moment is not None), default=None)


def full_accounts(run: Run, *, now: datetime) -> list[Account]:
    """Return the accounts that still have targets of the run and may send none of them today.

    A drip is never full: its plan already spreads its targets over the days.
    """
    if run.drip is not None:
        return []
    parts = max(1, len(run.parts))
    return [account for account in _waiting(run) if day_is_full(account, run.action, parts=parts, now=now)]


def over_for_today(account: Account) -> QuerySet[Run]:
    """Return running runs for which the account has nothing planned any more before their window closes."""
    soon = RunTarget.objects.filter(
        account=account, run=OuterRef("pk"), status=TargetStatus.PENDING, not_before__lt=OuterRef("closes_at")
    )
    runs = Run.objects.filter(run_accounts__account=account, run_accounts__open=True)
    return runs.filter(~Exists(soon), status=RunStatus.RUNNING, drip_gap_min=None, sending=0, pending__gt=0)


def _waiting(run: Run) -> QuerySet[Account]:
    theirs = RunTarget.objects.filter(run=run, status=TargetStatus.PENDING, account=OuterRef("pk"))
    return Account.objects.filter(Exists(theirs), run_accounts__run=run).defer("credentials").order_by("pk")
