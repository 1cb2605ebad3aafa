"""Steps that the moves share: lock a run, check its status, continue, pause, end, and notify."""

from collections.abc import Sequence
from datetime import datetime

from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from accounts.models import Account, Role, User
from accounts.roles import require_touch
from activity.models import Attempt
from delivery import live, notifications
from delivery.engine import wakeups
from delivery.lifecycle import events
from delivery.models import Run, RunAccount, RunQuerySet, RunTarget
from delivery.sentences import run_summary
from delivery.sessions import first_contacts
from delivery.states import RUN_MOVES, IllegalMoveError, PauseReason, RunStatus, TargetStatus, may_move
from delivery.window import Window, days_of, last_close, opens_at


class WrongStateError(IllegalMoveError):
    """Raised when a run, target or account is not in a state for this; the text says which state and what to do."""


def locked(run: Run, by: User | None = None) -> Run:
    """Lock the run until this transaction ends and return it as it is now; refuse people who may not change it."""
    if by is not None:
        require_touch(run, by, Role.SEND)
    return Run.objects.select_for_update(no_key=True).get(pk=run.pk)


def require(run: Run, new: RunStatus, otherwise: str, *, different: bool = False) -> None:
    if not may_move(RUN_MOVES, RunStatus(run.status), new) or (different and run.status == new):
        raise WrongStateError(f"Run {run.pk} is {run.status}. {otherwise}")


def open_runs(account: Account) -> RunQuerySet:
    """Return the account's open runs as they are now, locked until this transaction ends."""
    runs = Run.objects.filter(run_accounts__account=account, run_accounts__open=True)
    return runs.select_for_update(of=("self",), no_key=True).order_by("pk")


def announce_later(run: Run) -> None:
    run_id, owner_id = run.pk, run.owner_id
    transaction.on_commit(lambda: live.run_changed(run_id, owner_id))


def tell(run: Run) -> None:
    """Write the owner's notification with the change, and announce it to open pages after the commit."""
    announce_later(run)
    notifications.run_changed(run)


SETTING_OUT = (
    *("status", "opens_at", "closes_at", "started_at", "summary"),
    *("total", "pending", "skipped", "left_out", "undo_until"),
)


def window_of(run: Run) -> Window:
    days = days_of(run.send_days)
    return Window(start_hour=run.window_start_hour, end_hour=run.window_end_hour, days=days, zone=run.zone)


def go_on(run: Run, *, ready_at: datetime | None = None) -> None:
    """Let the run continue now if the window is open, else when it opens next; never before `ready_at`."""
    was, began = run.status, run.started_at is not None
    set_out(run, timezone.now(), ready_at=ready_at)
    run.save()
    RunAccount.objects.filter(run=run).update(open=True)
    events.run_goes_on(run, was=was, began=began)
    serve([run])
    announce_later(run)


def set_out(run: Run, now: datetime, *, ready_at: datetime | None = None) -> None:
    window = window_of(run)
    opening = opens_at(window, max(now, ready_at or now))
    status = RunStatus.RUNNING if opening <= now else RunStatus.QUEUED
    require(run, status, "It cannot continue.")
    run.status, run.pause_reason, run.summary = status, "", ""
    run.closes_at = last_close(window, opening)
    run.opens_at = None if status is RunStatus.RUNNING else opening
    if status is RunStatus.RUNNING:
        run.started_at = run.started_at or now


def serve(runs: Sequence[Run]) -> None:
    """Wake the accounts of the running runs. Pause a run that one of its accounts cannot serve."""
    running = [run for run in runs if run.status == RunStatus.RUNNING]
    shares = list(RunAccount.objects.filter(run__in=running).values_list("run_id", "account_id"))
    if not shares:
        return
    accounts = {account_id for _, account_id in shares}
    wakeups.wake_on_commit(accounts)
    # Read after the accounts are locked, so that none of them can stop unseen.
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


def hold(run: Run, reason: PauseReason, detail: str, *, opens_at: datetime | None = None) -> None:
    """Pause the run; with `opens_at` it continues by itself at that time."""
    release_claims(run)
    run.status, run.pause_reason, run.opens_at = RunStatus.PAUSED, reason, opens_at
    run.summary = detail or run_summary.paused(run)
    run.save()
    events.run_paused(run)
    tell(run)


def stop_for(run: Run, account: Account, reason: str) -> None:
    """Pause a run that an account cannot serve."""
    pause_reason = {
        Account.Status.FLAGGED: PauseReason.ACCOUNT_FLAGGED,
        Account.Status.PAUSED: PauseReason.OPERATOR,
    }.get(Account.Status(account.status), PauseReason.ACCOUNT_OFFLINE)
    if account.health == Account.Health.PAUSED:
        pause_reason = PauseReason.ACCOUNT_HEALTH
    hold(run, pause_reason, run_summary.account_stopped(run, account, reason))


def release_claims(run: Run) -> None:
    """Return targets that a pump has claimed and not begun to pending; the pump's `begin` will not find them."""
    held = RunTarget.objects.filter(run=run, status=TargetStatus.SENDING, begun_at__isnull=True)
    moved = held.update(status=TargetStatus.PENDING, claimed_at=None)
    run.sending, run.pending = run.sending - moved, run.pending + moved


def stopped_accounts(run: Run, status: TargetStatus) -> list[Account]:
    """Return the accounts that cannot send, among those with targets of this status.

    An account whose share waits for it holds up no pending target of others. Where no others are left, the run can
    only wait for such accounts.
    """
    theirs = RunTarget.objects.filter(run=run, status=status, account=OuterRef("account"))
    shares = RunAccount.objects.filter(Exists(theirs), run=run)
    stopped = shares.exclude(account__status=Account.Status.ACTIVE, account__archived_at=None)
    found = list(stopped.select_related("account").defer("account__credentials").order_by("account"))
    if status != TargetStatus.PENDING or not all(share.waits for share in found):
        return [share.account for share in found if status != TargetStatus.PENDING or not share.waits]
    others = shares.exclude(pk__in=[share.pk for share in found])
    return [] if others.exists() else [share.account for share in found]


def refuse(run: Run, stopped: list[Account]) -> None:
    if stopped:
        names = ", ".join(f"{account} is {state_of(account)}" for account in stopped)
        raise WrongStateError(f"Run {run.pk} cannot continue: {names}. Start the account first.")


def state_of(account: Account) -> str:
    return "archived" if account.archived_at is not None else account.get_status_display().lower()


CANCELED = "canceled by operator"
AT_ONCE = 1_000  # targets of a canceled run that one move skips; the tick skips the others


def settle_if_done(run: Run, *, most: int | None = None) -> None:
    """End the run if nothing is left to send. A canceled run first skips up to `most` of its pending targets
    (else `AT_ONCE`).

    A person who cancels a million of them does not wait for the rest: no statement of the engine begins a target of a
    run that does not run, so they can be skipped at leisure (`take_back`).
    """
    if run.canceled_at is not None:
        skip_pending(run, CANCELED, most=most or AT_ONCE)
    if run.pending == 0 and run.sending == 0:
        run.summary = ""  # the summary of a pause is out of date
        finish(run)
    elif run.canceled_at is not None:
        run.summary = run_summary.canceling(run)
        run.save()
        announce_later(run)


def finish(run: Run) -> None:
    run.status, run.pause_reason = _ending(run), ""
    run.opens_at = None
    run.finished_at = run.finished_at or timezone.now()
    run.summary = run.summary or run_summary.finished(run)
    run.save()
    RunAccount.objects.filter(run=run).update(open=False)
    events.run_finished(run)
    tell(run)


def _ending(run: Run) -> RunStatus:
    if run.sent and run.sent == run.expected:
        return RunStatus.SUCCESS
    if run.sent or run.unconfirmed:
        return RunStatus.PARTIAL
    if run.canceled_at is None:
        return RunStatus.FAILED
    half_sent = RunTarget.objects.filter(run=run, parts_done__gt=0).exists()
    return RunStatus.PARTIAL if half_sent else RunStatus.CANCELED


def skip_pending(run: Run, why: str, *, most: int | None = None) -> None:
    """Skip the run's pending targets, `most` of them if it is given.

    One whose message may have arrived, and which would have been sent again with the same key, becomes unconfirmed:
    "skipped" would say that nobody received it.
    """
    rest, now = RunTarget.objects.filter(run=run, status=TargetStatus.PENDING), timezone.now()
    if most is not None:
        rest = rest.filter(pk__in=list(rest.order_by("pk").values_list("pk", flat=True)[:most]))
    doubtful = leave_in_doubt(list(rest.filter(in_doubt()).values_list("pk", flat=True)), now=now)
    moved = rest.update(status=TargetStatus.SKIPPED, error=why, settled_at=now)
    run.pending -= moved + doubtful
    run.skipped, run.unconfirmed = run.skipped + moved, run.unconfirmed + doubtful


def leave_in_doubt(target_ids: Sequence[int], *, now: datetime) -> int:
    """Make targets unconfirmed that would have been sent again with the same key; return how many."""
    targets = RunTarget.objects.filter(pk__in=target_ids)
    # Through `sending`, where they were when their messages left: the database lets no others become unconfirmed.
    targets.update(status=TargetStatus.SENDING, claimed_at=now)
    return targets.update(status=TargetStatus.UNCONFIRMED, claimed_at=None, settled_at=now)


def in_doubt() -> Q:
    """Return the condition for pending targets whose message may have arrived: an attempt at it has no known result.

    Only a target that was claimed once has a fencing number: the others need no look into the ledger.
    """
    tries = Attempt.objects.filter(target=OuterRef("pk"), part__gte=OuterRef("parts_done"))
    return Q(fence__isnull=False) & Q(Exists(tries.filter(outcome=Attempt.Outcome.UNKNOWN)))
