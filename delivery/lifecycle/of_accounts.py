"""An account stops or starts, and its runs with it."""

from django.db import transaction
from django.utils import timezone

from accounts.models import Account, User
from accounts.roles import require_touch
from delivery import events, news, queues, warming
from delivery.lifecycle.holding import stop_for, stopped_accounts
from delivery.lifecycle.locking import WrongStateError, open_runs
from delivery.lifecycle.people import resume
from delivery.models import RunTarget
from delivery.states import (
    ACCOUNT_MOVES,
    GO_ON_WITH_THEIR_ACCOUNT,
    AccountStatus,
    RunStatus,
    TargetStatus,
    may_move,
)


@transaction.atomic
def stop_account(account: Account, *, status: str, reason: str, by: User | None = None) -> Account:
    """The account may not send any more; its runs pause and its owner is told."""
    account = locked_account(account, by)
    if account.status == status or (by is None and not _may_become(account, status)):
        return account  # what a service says late changes nothing that a person did meanwhile
    _move_account(account, status, reason, by)
    if status == AccountStatus.FLAGGED:
        warming.spoil_today(account, now=timezone.now())
    for run in open_runs(account).filter(status=RunStatus.RUNNING):
        stop_for(run, account, reason)
    if by is None and status in {AccountStatus.OFFLINE, AccountStatus.FLAGGED}:
        transaction.on_commit(lambda: news.account_stopped(account, reason))
    return account


@transaction.atomic
def start_account(account: Account, *, by: User | None = None) -> Account:
    """The account may send again: runs that it stopped go on. One that is put away stays so."""
    account = locked_account(account, by)
    if account.archived_at is not None:
        if by is None:
            return account
        raise WrongStateError(f"{account} is archived. Bring it back first.")
    was_offline = account.status == AccountStatus.OFFLINE
    _move_account(account, Account.Status.ACTIVE, "", by)
    if by is None and was_offline:
        transaction.on_commit(lambda: news.account_back(account))
    tried = RunTarget.objects.filter(account=account, status=TargetStatus.PENDING, attempts__gt=0)
    tried.update(attempts=0)  # what the account could not do is not held against them
    for run in open_runs(account).filter(pause_reason__in=GO_ON_WITH_THEIR_ACCOUNT, canceled_at=None):
        if not stopped_accounts(run, TargetStatus.PENDING):
            resume(run)
    queues.wake_on_commit([account.pk])
    return account


def pause_account(account: Account, *, by: User | None = None) -> Account:
    """Held by a person; its runs that have other accounts pause too, since an order is an order."""
    who = f"paused by {by}" if by else "paused"
    return stop_account(account, status=Account.Status.PAUSED, reason=who, by=by)


def locked_account(account: Account, by: User | None) -> Account:
    """The account as it is now, held until this transaction ends; refuses those who may not touch it.

    Its runs are locked first, in the order that every other move has: a run, then its accounts.
    """
    if by is not None:
        require_touch(account, by)
    list(open_runs(account).values_list("pk"))
    return Account.objects.select_for_update(no_key=True).get(pk=account.pk)


def _may_become(account: Account, status: str) -> bool:
    return may_move(ACCOUNT_MOVES, AccountStatus(account.status), AccountStatus(status))


def _move_account(account: Account, status: str, reason: str, by: User | None) -> None:
    if not _may_become(account, status):
        raise WrongStateError(
            f"{account} is {account.get_status_display().lower()} and cannot become {status}."
        )
    account.status, account.status_reason = status, reason[:255]
    account.status_by, account.status_changed_at = by, timezone.now()
    account.save(update_fields=["status", "status_reason", "status_by", "status_changed_at"])
    owner_id = account.owner_id
    transaction.on_commit(lambda: events.account_changed(account.pk, owner_id))
