"""How a run goes at this moment: its numbers, its rate, and why nothing leaves where nothing does."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from accounts.models import Account
from activity.models import Attempt
from delivery import events
from delivery.models import Run
from delivery.states import RunStatus, WaitReason

RATE_OVER = timedelta(seconds=60)
SHORT_WAITS = frozenset({"", WaitReason.GAP, WaitReason.NOTHING_TO_SEND})


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """An account of the run that is not sending now, why, and until when if that is known."""

    account: Account
    reason: str
    until: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What a page shows of an open run, and its JSON snapshot."""

    run: Run
    rate: float  # targets per minute
    finish_at: datetime | None
    waiting: list[Waiting]
    snapshot: dict[str, Any]


def progress_of(run: Run) -> Progress:
    accounts = _accounts(run) if run.status == RunStatus.RUNNING else []
    rate = rate_now(run, [account.pk for account in accounts]) if accounts else 0.0
    snapshot = events.snapshot(run, rate)
    finish = snapshot["finish_at"]
    return Progress(
        run=run,
        rate=rate,
        finish_at=datetime.fromisoformat(finish) if finish else None,
        waiting=[found for account in accounts if (found := _waiting(account))],
        snapshot=snapshot,
    )


def rate_now(run: Run, accounts: list[int]) -> float:
    """Targets per minute over the last minute, by the last part of each; sooner after the start, over less."""
    now = timezone.now()
    since = max(now - RATE_OVER, run.started_at or now)
    last_part = max(0, len(run.parts) - 1)
    done = Attempt.objects.filter(account__in=accounts, action=run.action, at__gte=since)
    count = done.filter(run=run, part=last_part, outcome=Attempt.Outcome.SENT).count()
    minutes = max((now - since).total_seconds(), 1.0) / 60
    return count / minutes


def _accounts(run: Run) -> list[Account]:
    shares = Account.objects.filter(run_accounts__run=run, run_accounts__open=True)
    return list(shares.defer("credentials").order_by("name"))


def _waiting(account: Account) -> Waiting | None:
    """The pauses between two messages are the pace itself: nothing to explain."""
    if account.status != Account.Status.ACTIVE:
        return Waiting(account=account, reason=WaitReason.ACCOUNT_STOPPED, until=None)
    over = account.waiting_until is not None and account.waiting_until <= timezone.now()
    if account.waiting_for in SHORT_WAITS or over:
        return None
    return Waiting(account=account, reason=account.waiting_for, until=account.waiting_until)
