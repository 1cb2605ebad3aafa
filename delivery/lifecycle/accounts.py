"""Stops and starts accounts, and their runs with them."""

from django.db import transaction
from django.utils import timezone

from accounts.models import Account, Role, User
from accounts.roles import require_touch
from audit.record import record as written_down
from delivery import live, notifications
from delivery.engine import trouble, wakeups
from delivery.health import record, words
from delivery.lifecycle import events
from delivery.lifecycle.people import resume
from delivery.lifecycle.steps import WrongStateError, open_runs, stop_for, stopped_accounts
from delivery.limits import warm_up
from delivery.models import RunAccount, RunTarget
from delivery.states import (
    ACCOUNT_MOVES,
    GO_ON_WITH_THEIR_ACCOUNT,
    AccountStatus,
    RunStatus,
    TargetStatus,
    may_move,
)

# From these an account connects again; a person's pause keeps its connection.
DISCONNECTED = frozenset(
    {AccountStatus.UNPAIRED, AccountStatus.PAIRING, AccountStatus.OFFLINE, AccountStatus.FLAGGED}
)
MOVED = ("status", "status_reason", "status_by", "status_changed_at", "reconnected_at")


@transaction.atomic
def stop_account(account: Account, *, status: str, reason: str, by: User | None = None) -> Account:
    """Stop the account from sending; pause its runs and notify its owner."""
    account = locked_account(account, by)
    if account.status == status or (by is None and not _may_become(account, status)):
        return account  # a late report of a service must not undo what a person did meanwhile
    if status == AccountStatus.OFFLINE and by is None and not _engine_knows_why(account):
        _expect_back(account, reason)
    before = account.status
    _move_account(account, status, reason, by)
    if by is not None and status == AccountStatus.PAUSED:
        written_down("account.paused", account, by=by, before={"status": before}, after={"status": status})
    if status == AccountStatus.FLAGGED:
        warm_up.begin_again(account, now=timezone.now())
    without_it = RunAccount.objects.filter(account=account, waits=True).values("run")
    for run in open_runs(account).filter(status=RunStatus.RUNNING).exclude(pk__in=without_it):
        stop_for(run, account, reason)
    if by is None and status in {AccountStatus.OFFLINE, AccountStatus.FLAGGED}:
        notifications.account_stopped(account, reason)
    return account


@transaction.atomic
def start_account(account: Account, *, by: User | None = None) -> Account:
    """Let the account send again and continue the runs that it stopped. An archived account is refused."""
    account = locked_account(account, by)
    if account.archived_at is not None:
        if by is None:
            return account
        raise WrongStateError(f"{account} is archived. Bring it back first.")
    if account.health == Account.Health.PAUSED:
        if by is None and account.health_until and account.health_until > timezone.now():
            _move_account(account, Account.Status.PAUSED, words.paused(account.health_reason), None)
            return account  # its service is back, and its own pause is not over
        if by is not None:
            require_touch(account, by, Role.MANAGE)  # it lifts a limit
        record.lift(account, by=by)
    was_offline = account.status == AccountStatus.OFFLINE
    before = {"status": account.status}
    _move_account(account, Account.Status.ACTIVE, "", by)
    if by is not None:
        written_down("account.resumed", account, by=by, before=before, after={"status": account.status})
    if by is None and was_offline:
        notifications.account_back(account)
    RunAccount.objects.filter(account=account, waits=True).update(waits=False)
    tried = RunTarget.objects.filter(account=account, status=TargetStatus.PENDING, attempts__gt=0)
    tried.update(attempts=0)  # failures of the account do not count against the runs
    for run in open_runs(account).filter(pause_reason__in=GO_ON_WITH_THEIR_ACCOUNT, canceled_at=None):
        if not stopped_accounts(run, TargetStatus.PENDING):
            resume(run)
    wakeups.wake_on_commit([account.pk])
    return account


@transaction.atomic
def lift_health(account: Account, *, by: User) -> Account:
    """Let an account send at full speed again that was slowed down or paused for its health; this is recorded."""
    account = locked_account(account, by, Role.MANAGE)
    if account.health == Account.Health.PAUSED:
        return start_account(account, by=by)
    if not record.lift(account, by=by):
        raise WrongStateError(f"{account} is not slowed down for its health: there is nothing to lift.")
    written_down("account.health_lifted", account, by=by)
    wakeups.wake_on_commit([account.pk])
    owner_id = account.owner_id
    transaction.on_commit(lambda: live.account_changed(account.pk, owner_id))
    return account


def pause_account(account: Account, *, by: User | None = None) -> Account:
    """Pause the account by a person's order; its runs pause too, even where they have other accounts."""
    who = f"paused by {by}" if by else "paused"
    return stop_account(account, status=Account.Status.PAUSED, reason=who, by=by)


def locked_account(account: Account, by: User | None, role: Role = Role.SEND) -> Account:
    """Lock the account until this transaction ends and return it; refuse people who may not change it.

    Its runs are locked first, in the order that every other move has: a run, then its accounts.
    """
    if by is not None:
        require_touch(account, by, role)
    list(open_runs(account).values_list("pk"))
    return Account.objects.select_for_update(no_key=True).get(pk=account.pk)


def _expect_back(account: Account, reason: str) -> None:
    """Record that the account went offline by itself, so that its service is asked until it is back (`probe.py`)."""
    account.trouble_kind, account.trouble = Account.Trouble.NOT_CONNECTED, reason
    account.trouble_since, account.held_until = timezone.now(), timezone.now()


def _engine_knows_why(account: Account) -> bool:
    """Return whether the engine's own trouble took the account offline, or a rate limit still holds.

    What a page found out is less certain than these.
    """
    lasting = {Account.Trouble.UNREACHABLE, Account.Trouble.NOT_CONNECTED, Account.Trouble.RATE_LIMITED}
    return account.trouble_count > 0 and account.trouble_kind in lasting


def _forget_trouble(account: Account) -> None:
    """Clear the account's trouble; only a wait that a service asked for still holds."""
    if account.trouble_kind and account.trouble_kind != Account.Trouble.RATE_LIMITED:
        account.held_until = None
        account.marks_fence = None  # the limiter has the hold: the next shift rebuilds it without
    trouble.forget(account)


def _may_become(account: Account, status: str) -> bool:
    return may_move(ACCOUNT_MOVES, AccountStatus(account.status), AccountStatus(status))


def _move_account(account: Account, status: str, reason: str, by: User | None) -> None:
    if not _may_become(account, status):
        raise WrongStateError(
            f"{account} is {account.get_status_display().lower()} and cannot become {status}."
        )
    if status == AccountStatus.ACTIVE and account.status in DISCONNECTED:
        account.reconnected_at = timezone.now()
    account.status, account.status_reason = status, reason[:255]
    account.status_by, account.status_changed_at = by, timezone.now()
    if status != AccountStatus.OFFLINE:
        _forget_trouble(account)
    account.save(update_fields=[*MOVED, *trouble.FIELDS, "marks_fence"])
    events.account_changed(account)
    owner_id = account.owner_id
    transaction.on_commit(lambda: live.account_changed(account.pk, owner_id))
