"""How a run comes to a halt, and which of its accounts keep it there."""

from datetime import datetime

from django.db.models import Exists, OuterRef

from accounts.models import Account
from delivery import summary
from delivery.lifecycle.locking import WrongStateError
from delivery.lifecycle.telling import tell_later
from delivery.models import Run, RunTarget
from delivery.states import PauseReason, RunStatus, TargetStatus


def hold(run: Run, reason: PauseReason, detail: str, *, opens_at: datetime | None = None) -> None:
    """Pause it; until `opens_at` where it goes on by itself."""
    release_claims(run)
    run.status, run.pause_reason, run.opens_at = RunStatus.PAUSED, reason, opens_at
    run.summary = detail or summary.paused(run)
    run.save()
    tell_later(run)


def stop_for(run: Run, account: Account, reason: str) -> None:
    """Pause a run that an account cannot serve."""
    pause_reason = {
        Account.Status.FLAGGED: PauseReason.ACCOUNT_FLAGGED,
        Account.Status.PAUSED: PauseReason.OPERATOR,
    }.get(Account.Status(account.status), PauseReason.ACCOUNT_OFFLINE)
    hold(run, pause_reason, summary.account_stopped(run, account, reason))


def release_claims(run: Run) -> None:
    """What a pump holds and has not begun goes back; its `begin` will find it gone."""
    held = RunTarget.objects.filter(run=run, status=TargetStatus.SENDING, begun_at__isnull=True)
    moved = held.update(status=TargetStatus.PENDING, claimed_at=None)
    run.sending, run.pending = run.sending - moved, run.pending + moved


def stopped_accounts(run: Run, status: TargetStatus) -> list[Account]:
    """The accounts that cannot send, among those that have targets of this status."""
    theirs = RunTarget.objects.filter(run=run, status=status, account=OuterRef("pk"))
    shares = Account.objects.filter(Exists(theirs), run_accounts__run=run)
    return list(shares.exclude(status=Account.Status.ACTIVE, archived_at=None))


def refuse(run: Run, stopped: list[Account]) -> None:
    if stopped:
        names = ", ".join(f"{account} is {state_of(account)}" for account in stopped)
        raise WrongStateError(f"Run {run.pk} cannot go on: {names}. Start the account first.")


def state_of(account: Account) -> str:
    return "archived" if account.archived_at is not None else account.get_status_display().lower()
