"""Hands over the rest of a run, or all work of an account, to other accounts (SPEC S8).

1. Lock the run, then the accounts. Nothing is claimed, and no status changes, while the run is locked.
2. Move the pending targets that may move (`split.py`). What is claimed, begun or unconfirmed stays where it is.
3. Give the run a share for each new account. The share of an account that cannot send and keeps some waits for it:
   the run goes on without it.
4. Plan drips and new people anew, under the limits of the new accounts.
5. Let a run continue that only its account had stopped, and wake the new accounts.

A message that the old account's pump still has in hand is not sent by it any more: `BEGIN` asks for the account.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from django.db import transaction
from django.utils import timezone

from accounts.models import Account, Role, User
from accounts.roles import require_touch
from audit.record import record
from delivery import live
from delivery.engine import wakeups
from delivery.hand_over import approval
from delivery.hand_over.split import Split, Wish, count, move
from delivery.lifecycle.day_caps import ready_at
from delivery.lifecycle.steps import WrongStateError, announce_later, go_on, locked, serve, state_of
from delivery.limits.lookup import effective_limits, why_never
from delivery.models import Run, RunAccount, RunTarget
from delivery.planning import drip, new_people
from delivery.sessions import first_contacts
from delivery.states import GO_ON_WITH_THEIR_ACCOUNT, SETTLED_RUN, TargetStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class HandedOver:
    """A run after a hand-over, and what moved."""

    run: Run
    split: Split


@transaction.atomic
def hand_over(run: Run, wish: Wish, *, by: User | None = None, most: int | None = None) -> HandedOver:
    """Move what may move of a run; raise WrongStateError where nothing does.

    Raise NeedsApprovalError where a second person has to approve first; `most` is how many messages somebody approved.
    """
    if by is not None:
        require_touch(run, by, Role.SEND)
    run = locked(run)
    refuse_ended(run)
    now = timezone.now()
    sources = sources_of(run, wish)
    accounts = _locked_accounts(run, wish, sources, by)
    split = count(run, wish, sources, now=now)
    if not split.moved:
        raise WrongStateError(f"Nothing of run {run.pk} can move to these accounts. Choose others.")
    approval.require(run, wish, split, accounts, most=most)
    move(run, wish, sources, now=now)
    run.changed_by = by
    record(
        "run.hand_over", run, by=by, after={"to": list(wish.to), "messages": split.moved, "known": wish.known}
    )
    _share(run, split, {account.pk: account for account in accounts})
    _plan_anew(run, split, now=now)
    _continue(run)
    wakeups.wake_on_commit([*split.moves, *sources])
    return HandedOver(run=run, split=split)


def refuse_ended(run: Run) -> None:
    """Raise WrongStateError for a run that sends nothing more."""
    if run.status in SETTLED_RUN or run.canceled_at is not None:
        raise WrongStateError(f"Run {run.pk} is {run.shown_status}: there is nothing left to hand over.")


def sources_of(run: Run, wish: Wish) -> list[int]:
    """Return the accounts whose targets may move: all of the run, or the one that is named.

    An account that is also among those to move to shares its rest with the others.
    """
    shares = RunAccount.objects.filter(run=run, open=True)
    if wish.of is not None:
        shares = shares.filter(account=wish.of)
    return sorted(shares.values_list("account_id", flat=True))


def runs_of(account: Account) -> list[Run]:
    """Return the runs of which an account still has something to send, the first to be sent first."""
    shares = RunAccount.objects.filter(account=account, open=True).values("run")
    rows = Run.objects.open().filter(pk__in=shares, canceled_at=None).order_by("-priority", "fired_at", "pk")
    pending = RunTarget.objects.filter(account=account, status=TargetStatus.PENDING)
    return [run for run in rows if pending.filter(run=run).exists()]


def why_not(run: Run, account: Account) -> str:
    """Return why an account cannot take targets of a run; empty if it can."""
    if account.owner_id != run.owner_id:
        return f"{account} belongs to somebody else. Choose another account."
    if account.archived_at is not None or account.status != Account.Status.ACTIVE:
        return f"{account} is {state_of(account)} and cannot send. Choose another account."
    channels = Account.objects.filter(run_accounts__run=run).values_list("channel", flat=True)
    if account.channel not in set(channels):
        return f"{account} is on another channel than this run. Choose another account."
    return why_never(account, effective_limits(account, run.action), len(run.parts))


def _locked_accounts(run: Run, wish: Wish, sources: Sequence[int], by: User | None) -> list[Account]:
    """Lock all accounts that are involved, in the order that every move has; refuse those that cannot take any."""
    rows = Account.objects.select_for_update(no_key=True).filter(pk__in={*wish.to, *sources})
    accounts = list(rows.defer("credentials").order_by("pk"))
    refuse_unable(run, [account for account in accounts if account.pk in set(wish.to)], wish, by)
    return accounts


def refuse_unable(run: Run, chosen: Sequence[Account], wish: Wish, by: User | None) -> None:
    """Raise WrongStateError or PermissionDenied where one of the accounts cannot take targets of the run."""
    if not chosen or {account.pk for account in chosen} != set(wish.to):
        raise WrongStateError("Choose at least one other account, of those that exist.")
    for account in chosen:
        if by is not None:
            require_touch(account, by, Role.SEND)
        if why := why_not(run, account):
            raise WrongStateError(why)


def _share(run: Run, split: Split, accounts: dict[int, Account]) -> None:
    new = [RunAccount(run=run, account_id=pk) for pk in split.moves]
    RunAccount.objects.bulk_create(new, ignore_conflicts=True)
    shares = RunAccount.objects.filter(run=run)
    shares.filter(account__in=split.moves).update(open=True, waits=False)
    stopped = [pk for pk in split.left if accounts[pk].status != Account.Status.ACTIVE]
    shares.filter(account__in=stopped).update(waits=True)


def _plan_anew(run: Run, split: Split, *, now: datetime) -> None:
    """Give the moved targets times under their new account's limits, and close the gaps that they leave behind."""
    if run.drip:
        for account_id in sorted({*split.moves, *split.left}):
            drip.plan(run, now=now, only=account_id)
        return
    for account in Account.objects.filter(pk__in=split.moves).defer("credentials").order_by("pk"):
        if new_people.limit_people(effective_limits(account, run.action)):
            new_people.spread(run, account, now=now)
    first_contacts.hold([run.pk])


def _continue(run: Run) -> None:
    """Let the run go on where only its account had stopped it, or it waits to go on by itself."""
    if run.pause_reason in GO_ON_WITH_THEIR_ACCOUNT or run.goes_on_by_itself:
        go_on(run, ready_at=ready_at(run))
        return
    run.save()
    serve([run])
    announce_later(run)
    for account_id in run.run_accounts.values_list("account_id", flat=True):
        transaction.on_commit(partial(live.account_changed, account_id, run.owner_id))
