"""A run's life, one function per move, used by every page, action, command and the engine.

Each locks the run, refuses a move that `states.py` does not allow, changes the run and its targets in one
transaction, and wakes, tells and announces once that is committed.
"""

from collections.abc import Sequence
from datetime import datetime

from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from accounts.models import Account, User
from accounts.roles import require_touch
from delivery import events, knobs, news, queues, summary
from delivery.inbound import first_contacts
from delivery.models import Run, RunAccount, RunQuerySet, RunTarget
from delivery.send_days import days_of
from delivery.states import (
    ACCOUNT_MOVES,
    RUN_MOVES,
    SETTLED_RUN,
    AccountStatus,
    IllegalMoveError,
    PauseReason,
    RunStatus,
    TargetStatus,
    may_move,
)
from delivery.window import CloseMove, Window, closes_at, is_open, on_close, opens_at

CANCELED = "canceled by operator"
FAR_OFF_DAYS = 14  # how far ahead windows that touch are taken as one


class WrongStateError(IllegalMoveError):
    """The run, target or account is not in a state for this; the text says which state and what to do."""


# What people do.


@transaction.atomic
def pause(run: Run, *, reason: PauseReason, by: User | None = None, detail: str = "") -> Run:
    """Hold a run still: nothing leaves after this is committed but what is already in the air."""
    run = _locked(run, by)
    _require(run, RunStatus.PAUSED, "Only a run that is queued or running can be paused.", different=True)
    run.changed_by = by
    _pause(run, reason, detail)
    return run


@transaction.atomic
def resume(run: Run, *, by: User | None = None) -> Run:
    """Go on with the pending targets, now or when the window opens next."""
    run = _locked(run, by)
    if run.status != RunStatus.PAUSED:
        raise WrongStateError(f"Run {run.pk} is {run.status}: only a paused run can be resumed.")
    if run.canceled_at is not None:
        raise WrongStateError(
            f"Run {run.pk} was canceled and is about to end: fire its reminder again instead."
        )
    _refuse(run, _stopped_accounts(run, TargetStatus.PENDING))
    run.changed_by = by
    run.sent_before, run.failed_before = run.sent, run.failed
    _go_on(run)
    return run


@transaction.atomic
def cancel(run: Run, *, by: User | None = None) -> Run:
    """Skip what is left. What is in the air still lands, and then the run settles."""
    run = _locked(run, by)
    if run.status in SETTLED_RUN:
        raise WrongStateError(f"Run {run.pk} is {run.status} already: there is nothing left to cancel.")
    _release_claims(run)
    run.canceled_at = run.canceled_at or timezone.now()
    run.changed_by = by
    if run.status != RunStatus.PAUSED:
        run.status, run.pause_reason = RunStatus.PAUSED, PauseReason.OPERATOR
    run.opens_at = None
    run.save()
    _settle(run)
    return run


@transaction.atomic
def retry_failed(run: Run, *, by: User | None = None) -> Run:
    """Queue the failed targets of a settled run again, and only those."""
    run = _locked(run, by)
    if run.status not in {RunStatus.PARTIAL, RunStatus.FAILED}:
        raise WrongStateError(
            f"Run {run.pk} is {run.status}: only a run that ended partial or failed can be retried."
        )
    if run.failed == 0:
        raise WrongStateError(f"Run {run.pk} has no failed targets: there is nothing to retry.")
    _refuse(run, _stopped_accounts(run, TargetStatus.FAILED))
    failed = RunTarget.objects.filter(run=run, status=TargetStatus.FAILED)
    moved = failed.update(
        status=TargetStatus.PENDING, attempts=0, not_before=timezone.now(), settled_at=None, error=""
    )
    run.failed, run.pending = run.failed - moved, run.pending + moved
    run.sent_before, run.failed_before = run.sent, run.failed
    run.changed_by, run.finished_at, run.canceled_at = by, None, None
    _go_on(run)
    return run


@transaction.atomic
def confirm(target: RunTarget, *, by: User | None = None) -> Run:
    """A person saw that an unconfirmed message did arrive; parts that come after it still go out."""
    run, target = _locked_unconfirmed(target, by)
    if target.parts_done + 1 < len(run.parts):
        return _send_on(run, target, by, parts_done=target.parts_done + 1)
    target.status, target.error, target.settled_at = TargetStatus.SENT, "", timezone.now()
    target.save(update_fields=["status", "error", "settled_at"])
    run.unconfirmed, run.sent = run.unconfirmed - 1, run.sent + 1
    run.changed_by = by
    run.save()
    if run.status in SETTLED_RUN:
        run.summary = ""
        _finish(run)
    return run


@transaction.atomic
def resend(target: RunTarget, *, by: User | None = None) -> Run:
    """A person saw that an unconfirmed message did not arrive, and wants it sent."""
    run, target = _locked_unconfirmed(target, by)
    return _send_on(run, target, by, parts_done=target.parts_done)


def _send_on(run: Run, target: RunTarget, by: User | None, *, parts_done: int) -> Run:
    """Queue an unconfirmed target again, from its next part on."""
    if target.account.status != Account.Status.ACTIVE:
        _refuse(run, [target.account])
    target.status, target.error, target.settled_at, target.attempts = TargetStatus.PENDING, "", None, 0
    target.not_before, target.parts_done = timezone.now(), parts_done
    target.save(update_fields=["status", "error", "settled_at", "attempts", "not_before", "parts_done"])
    run.unconfirmed, run.pending = run.unconfirmed - 1, run.pending + 1
    run.changed_by, run.canceled_at = by, None
    if run.status in SETTLED_RUN:
        run.finished_at = None
        _go_on(run)
    else:
        run.save()
        _serve([run])
    return run


@transaction.atomic
def archive(run: Run, *, by: User | None = None) -> Run:
    """Put a settled run out of sight."""
    run = _locked(run, by)
    if run.status not in SETTLED_RUN:
        raise WrongStateError(f"Run {run.pk} is {run.status}: wait for its end, or cancel it first.")
    run.archived_at = run.archived_at or timezone.now()
    run.save()
    return run


# What time does.


def start(runs: Sequence[Run]) -> None:
    """Runs that were just made go, each now or when its window opens. One statement for all, of each kind."""
    now = timezone.now()
    for run in runs:
        _set_out(run, now)
    Run.objects.bulk_update(runs, SETTING_OUT)
    _serve(runs)
    for run in runs:
        _announce_later(run)


def end_empty(run: Run) -> None:
    """A run that was just made and has nothing to send is over."""
    _finish(run)


def wait_behind(run: Run, ahead: int) -> None:
    """A run that was just made waits until the last run of its reminder has ended."""
    run.summary = summary.behind(ahead)
    run.save()
    _announce_later(run)


@transaction.atomic
def start_waiting(run: Run) -> Run:
    """The run that this one waited for has ended: go on."""
    run = _locked(run)
    if run.status == RunStatus.QUEUED and run.opens_at is None:
        _go_on(run)
    return run


def miss(run: Run, why: str) -> None:
    """A run that was made too late: nothing of it is sent."""
    _skip_pending(run, "fired after the delivery window")
    run.summary = why
    _finish(run)


@transaction.atomic
def open_window(run: Run) -> Run:
    """The window of a run that waits for it is open: go on."""
    run = _locked(run)
    if run.status in {RunStatus.QUEUED, RunStatus.PAUSED} and run.opens_at and run.opens_at <= timezone.now():
        _go_on(run)
    return run


@transaction.atomic
def close_window(run: Run) -> Run:
    """The window of a running run has closed: pause, fail, wait for the next one or settle (W4, W5, W6)."""
    run = _locked(run)
    now = timezone.now()
    if run.status != RunStatus.RUNNING or run.closes_at is None or run.closes_at > now:
        return run
    window = window_of(run)
    if is_open(window, now):
        _go_on(run)
        return run
    _release_claims(run)
    if run.sending:
        run.save()
        return run  # what is in the air lands first; the next tick decides
    later = RunTarget.objects.filter(run=run, status=TargetStatus.PENDING, not_before__gt=now).count()
    move = on_close(
        sent=run.sent + run.unconfirmed,
        pending=run.pending,
        resumes_by_itself=run.resumes_by_itself,
        planned_later=later,
    )
    _close(run, move, opens_at(window, now))
    return run


def _close(run: Run, move: CloseMove, next_opening: datetime) -> None:
    if move is CloseMove.SETTLE:
        _settle(run)
    elif move is CloseMove.FAIL:
        _skip_pending(run, "the delivery window closed before anything could be sent")
        run.summary = summary.closed_before_first(run)
        _finish(run)
    elif move is CloseMove.CARRY_ON and not run.resumes_by_itself:
        run.status, run.opens_at = RunStatus.QUEUED, next_opening
        run.save()
        _announce_later(run)
    else:
        run.status, run.pause_reason = RunStatus.PAUSED, PauseReason.WINDOW_CLOSED
        run.opens_at = next_opening if move is CloseMove.CARRY_ON else None
        run.summary = summary.window_closed(run)
        run.save()
        _tell_later(run)


@transaction.atomic
def trip(run_id: int) -> bool:
    """Pause a run whose error rate is too high since it was last resumed; whether it was."""
    run = Run.objects.select_for_update(no_key=True).get(pk=run_id)
    since = knobs.trips(run.sent - run.sent_before, run.failed - run.failed_before)
    if run.status == RunStatus.RUNNING and since:
        pause(run, reason=PauseReason.ERROR_RATE)
        return True
    return False


@transaction.atomic
def settle(run_id: int) -> None:
    """End a run of which nothing is left to send."""
    run = Run.objects.select_for_update(no_key=True).get(pk=run_id)
    if run.status not in SETTLED_RUN:
        _settle(run)


@transaction.atomic
def withdraw(recipient_id: int, *, kind: Run.Kind, why: str) -> int:
    """Skip what is on its way to a recipient in runs of a kind and has not begun to leave; how many targets."""
    on_its_way = Q(status=TargetStatus.PENDING) | Q(status=TargetStatus.SENDING, begun_at__isnull=True)
    targets = RunTarget.objects.filter(on_its_way, recipient=recipient_id, run__kind=kind)
    withdrawn = 0
    for run_id in sorted(set(targets.values_list("run_id", flat=True))):
        run = Run.objects.select_for_update(no_key=True).get(pk=run_id)
        target = targets.filter(run=run).select_for_update(of=("self",)).first()
        if target is None or run.status in SETTLED_RUN:
            continue
        was = TargetStatus(target.status)
        target.status, target.error, target.settled_at = TargetStatus.SKIPPED, why, timezone.now()
        target.claimed_at = None
        target.save(update_fields=["status", "error", "settled_at", "claimed_at"])
        setattr(run, was, getattr(run, was) - 1)
        run.skipped += 1
        run.save()
        _settle(run)
        withdrawn += 1
    return withdrawn


# What happens to accounts.


@transaction.atomic
def stop_account(account: Account, *, status: str, reason: str, by: User | None = None) -> Account:
    """The account may not send any more; its runs pause and its owner is told."""
    account = _locked_account(account, by)
    if account.status == status or (by is None and not _may_become(account, status)):
        return account  # what a service says late changes nothing that a person did meanwhile
    _move_account(account, status, reason, by)
    for run in _open_runs(account).filter(status=RunStatus.RUNNING):
        _stop_for(run, account, reason)
    if by is None and status in {AccountStatus.OFFLINE, AccountStatus.FLAGGED}:
        transaction.on_commit(lambda: news.account_stopped(account, reason))
    return account


@transaction.atomic
def start_account(account: Account, *, by: User | None = None) -> Account:
    """The account may send again: runs that it stopped go on."""
    account = _locked_account(account, by)
    was_offline = account.status == AccountStatus.OFFLINE
    _move_account(account, Account.Status.ACTIVE, "", by)
    if by is None and was_offline:
        transaction.on_commit(lambda: news.account_back(account))
    targets = RunTarget.objects.filter(
        account=account, status=TargetStatus.PENDING, run__status=RunStatus.PAUSED
    )
    targets.update(attempts=0)
    stopped = [PauseReason.ACCOUNT_OFFLINE, PauseReason.ACCOUNT_FLAGGED]
    for run in _open_runs(account).filter(pause_reason__in=stopped, canceled_at=None):
        if not _stopped_accounts(run, TargetStatus.PENDING):
            resume(run)
    queues.wake_on_commit([account.pk])
    return account


def pause_account(account: Account, *, by: User | None = None) -> Account:
    """Held by a person; its runs that have other accounts pause too, since an order is an order."""
    who = f"paused by {by}" if by else "paused"
    return stop_account(account, status=Account.Status.PAUSED, reason=who, by=by)


# The steps that these share.


def window_of(run: Run) -> Window:
    days = days_of(run.send_days)
    return Window(start_hour=run.window_start_hour, end_hour=run.window_end_hour, days=days, zone=run.zone)


def last_close(window: Window, now: datetime) -> datetime:
    """When the window that is open at `now` closes; windows that touch, as from 0 to 24, are one."""
    end = closes_at(window, now)
    for _ in range(FAR_OFF_DAYS):
        if not is_open(window, end):
            break
        end = closes_at(window, end)
    return end


def _locked(run: Run, by: User | None = None) -> Run:
    """The run as it is now, held until this transaction ends; refuses those who may not touch it."""
    if by is not None:
        require_touch(run, by)
    return Run.objects.select_for_update(no_key=True).get(pk=run.pk)


def _locked_unconfirmed(target: RunTarget, by: User | None) -> tuple[Run, RunTarget]:
    run = _locked(target.run, by)
    target = RunTarget.objects.select_for_update().get(pk=target.pk)
    if target.status != TargetStatus.UNCONFIRMED:
        raise WrongStateError(f"This message is {target.status}: only an unconfirmed one needs a decision.")
    return run, target


def _require(run: Run, new: RunStatus, otherwise: str, *, different: bool = False) -> None:
    if not may_move(RUN_MOVES, RunStatus(run.status), new) or (different and run.status == new):
        raise WrongStateError(f"Run {run.pk} is {run.status}. {otherwise}")


def _go_on(run: Run) -> None:
    """Run now if the window is open, else when it opens next."""
    _set_out(run, timezone.now())
    run.save()
    RunAccount.objects.filter(run=run).update(open=True)
    _serve([run])
    _announce_later(run)


SETTING_OUT = ("status", "opens_at", "closes_at", "started_at", "summary", "total", "pending", "skipped")


def _set_out(run: Run, now: datetime) -> None:
    window = window_of(run)
    status = RunStatus.RUNNING if is_open(window, now) else RunStatus.QUEUED
    _require(run, status, "It cannot go on.")
    run.status, run.pause_reason, run.summary = status, "", ""
    run.closes_at = last_close(window, now)
    run.opens_at = None if status is RunStatus.RUNNING else opens_at(window, now)
    if status is RunStatus.RUNNING:
        run.started_at = run.started_at or now


def _serve(runs: Sequence[Run]) -> None:
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
        .exclude(status=Account.Status.ACTIVE)
        .values_list("pk", flat=True)
    )
    held = {run_id for run_id, account_id in shares if account_id in stopped}
    for run in running:
        for account in _stopped_accounts(run, TargetStatus.PENDING)[:1] if run.pk in held else ():
            _stop_for(run, account, account.status_reason or account.get_status_display().lower())


def _stop_for(run: Run, account: Account, reason: str) -> None:
    """Pause a run that an account cannot serve."""
    pause_reason = {
        Account.Status.FLAGGED: PauseReason.ACCOUNT_FLAGGED,
        Account.Status.PAUSED: PauseReason.OPERATOR,
    }.get(Account.Status(account.status), PauseReason.ACCOUNT_OFFLINE)
    _pause(run, pause_reason, summary.account_stopped(run, account, reason))


def _pause(run: Run, reason: PauseReason, detail: str) -> None:
    _release_claims(run)
    run.status, run.pause_reason, run.opens_at = RunStatus.PAUSED, reason, None
    run.summary = detail or summary.paused(run)
    run.save()
    _tell_later(run)


def _release_claims(run: Run) -> None:
    """What a pump holds and has not begun goes back; its `begin` will find it gone."""
    held = RunTarget.objects.filter(run=run, status=TargetStatus.SENDING, begun_at__isnull=True)
    moved = held.update(status=TargetStatus.PENDING, claimed_at=None)
    run.sending, run.pending = run.sending - moved, run.pending + moved


def _skip_pending(run: Run, why: str) -> None:
    rest = RunTarget.objects.filter(run=run, status=TargetStatus.PENDING)
    moved = rest.update(status=TargetStatus.SKIPPED, error=why, settled_at=timezone.now())
    run.pending, run.skipped = run.pending - moved, run.skipped + moved


def _settle(run: Run) -> None:
    """End the run if nothing is left; a canceled one skips what is."""
    if run.canceled_at is not None:
        _skip_pending(run, CANCELED)
    if run.pending == 0 and run.sending == 0:
        run.summary = ""  # that of a pause is out of date
        _finish(run)
    elif run.canceled_at is not None:
        run.save()
        _announce_later(run)


def _finish(run: Run) -> None:
    run.status, run.pause_reason = _ending(run), ""
    run.opens_at = None
    run.finished_at = run.finished_at or timezone.now()
    run.summary = run.summary or summary.finished(run)
    run.save()
    RunAccount.objects.filter(run=run).update(open=False)
    _tell_later(run)


def _ending(run: Run) -> RunStatus:
    if run.sent == run.total and run.total > 0:
        return RunStatus.SUCCESS
    if run.canceled_at is not None and run.sent == 0 and run.unconfirmed == 0:
        return RunStatus.CANCELED
    return RunStatus.PARTIAL if run.sent or run.unconfirmed else RunStatus.FAILED


def _stopped_accounts(run: Run, status: TargetStatus) -> list[Account]:
    """The accounts that cannot send, among those that have targets of this status."""
    theirs = RunTarget.objects.filter(run=run, status=status, account=OuterRef("pk"))
    shares = Account.objects.filter(Exists(theirs), run_accounts__run=run)
    return list(shares.exclude(status=Account.Status.ACTIVE))


def _refuse(run: Run, stopped: list[Account]) -> None:
    if stopped:
        names = ", ".join(f"{account} is {account.get_status_display().lower()}" for account in stopped)
        raise WrongStateError(f"Run {run.pk} cannot go on: {names}. Start the account first.")


def _open_runs(account: Account) -> RunQuerySet:
    """Its runs, as they are now, held until this transaction ends."""
    runs = Run.objects.filter(run_accounts__account=account, run_accounts__open=True)
    return runs.select_for_update(of=("self",), no_key=True).order_by("pk")


def _locked_account(account: Account, by: User | None) -> Account:
    """The account as it is now, held until this transaction ends; refuses those who may not touch it.

    Its runs are locked first, in the order that every other move has: a run, then its accounts.
    """
    if by is not None:
        require_touch(account, by)
    list(_open_runs(account).values_list("pk"))
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


def _announce_later(run: Run) -> None:
    run_id, owner_id = run.pk, run.owner_id
    transaction.on_commit(lambda: events.run_changed(run_id, owner_id))


def _tell_later(run: Run) -> None:
    """The owner is told once this is committed, and the pages too."""
    _announce_later(run)
    transaction.on_commit(lambda: news.run_changed(run))
