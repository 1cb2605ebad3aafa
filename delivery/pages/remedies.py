"""The buttons beside a paused run that end the cause of its pause."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Exists, F, OuterRef, Window
from django.db.models.functions import RowNumber
from django.urls import reverse

from accounts.models import Account, Role, User
from accounts.roles import touchable
from delivery.models import Run, RunAccount
from delivery.pages.account_facts import allowed_actions
from delivery.sentences.next_action import NextAction
from delivery.states import PauseReason, RunStatus

MOST_ACCOUNTS = 3  # with buttons of their own
MOST_READ = 50  # of each run, those first whose state changed last


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """A button or a link: what it does, where, and whether it is a POST."""

    label: str
    url: str
    icon: str
    post: bool = False


def remedies_of(run: Run, user: User) -> list[Remedy]:
    """Return what a person can do about the cause of a pause, besides Resume and Cancel."""
    return remedies_of_all([run], user)[run.pk]


def remedies_of_all(runs: Sequence[Run], user: User) -> dict[int, list[Remedy]]:
    """Return the remedies of each run; the accounts of all runs are read together."""
    paused = [run.pk for run in runs if run.status == RunStatus.PAUSED and run.canceled_at is None]
    accounts = _accounts(paused)
    every = {account.pk: account for found in accounts.values() for account in found}
    able = allowed_actions([*every.values()], user) if every else {}
    managed = _managed([*every], user) if every else set()
    others = _with_others(runs) if every else set()
    found: dict[int, list[Remedy]] = {run.pk: [] for run in runs}
    for run in runs:
        if run.pk in paused:
            mine = accounts.get(run.pk, [])
            given = _of_hand_over(run) if run.pk in others else ()
            found[run.pk] = [*_of_accounts(mine, able), *_of_the_reason(run, mine, managed), *given]
    return found


def _managed(accounts: Sequence[int], user: User) -> set[int]:
    rows = Account.objects.filter(pk__in=accounts)
    return set(touchable(rows, user, Role.MANAGE).values_list("pk", flat=True))


def _of_accounts(accounts: Sequence[Account], able: Mapping[int, NextAction]) -> Iterator[Remedy]:
    """Yield the next action of each account that cannot send, and a link to those in trouble."""
    for account in accounts:
        action = able.get(account.pk)
        if action is not None and account.status != Account.Status.ACTIVE:
            url = reverse(action.url, args=[account.pk])
            yield Remedy(label=f"{action.label} {account}", url=url, icon=action.icon, post=action.post)
        elif (
            account.trouble_kind or account.status != Account.Status.ACTIVE or account.archived_at is not None
        ):
            yield Remedy(label=f"Open {account}", url=_page(account), icon="accounts")


def _of_the_reason(run: Run, accounts: Sequence[Account], managed: Collection[int]) -> Iterator[Remedy]:
    match run.pause_reason:
        case PauseReason.ERROR_RATE:
            yield from _of_errors(run)
        case PauseReason.DAILY_CAP:
            for account in (each for each in accounts if each.pk in managed):
                url = reverse("accounts:limits", args=[account.pk])
                yield Remedy(label=f"Limits of {account}", url=url, icon="gauge")
        case PauseReason.WINDOW_CLOSED:
            yield Remedy(label="Widen the hours", url=reverse("runs:hours", args=[run.pk]), icon="clock")


def _of_hand_over(run: Run) -> Iterator[Remedy]:
    """Yield the link to hand the rest over, where other accounts would send what this one cannot."""
    if run.pending and run.pause_reason != PauseReason.ERROR_RATE:
        yield Remedy(label="Hand over", url=reverse("runs:hand_over", args=[run.pk]), icon="accounts")


def _with_others(runs: Sequence[Run]) -> set[int]:
    """Return the runs whose owner has an active account on the same channel that is none of the run's."""
    mine = RunAccount.objects.filter(run=OuterRef("pk"))
    others = Account.objects.filter(
        owner=OuterRef("owner"),
        status=Account.Status.ACTIVE,
        archived_at=None,
        channel=OuterRef("reminder__channel"),
    ).exclude(pk__in=RunAccount.objects.filter(run=OuterRef(OuterRef("pk"))).values("account"))
    rows = Run.objects.filter(Exists(mine), Exists(others), pk__in=[run.pk for run in runs])
    return set(rows.values_list("pk", flat=True))


def _of_errors(run: Run) -> Iterator[Remedy]:
    for status, label in (("failed", "See {} failed"), ("unconfirmed", "Decide about {} unconfirmed")):
        if count := getattr(run, status):
            url = f"{reverse('runs:page', args=[run.pk])}?status={status}#targets"
            yield Remedy(label=label.format(f"{count:,}"), url=url, icon=status)


def _accounts(runs: Sequence[int]) -> dict[int, list[Account]]:
    """Return a few accounts of each run, those first that cannot send."""
    if not runs:
        return {}
    place = Window(
        RowNumber(),
        partition_by=F("run"),
        order_by=[F("account__status_changed_at").desc(nulls_last=True), "account_id"],
    )
    shares = (
        RunAccount.objects.filter(run__in=runs, open=True).alias(place=place).filter(place__lte=MOST_READ)
    )
    found: dict[int, list[Account]] = {}
    for share in shares.select_related("account").defer("account__credentials", "account__webhook"):
        found.setdefault(share.run_id, []).append(share.account)
    return {run: sorted(accounts, key=_stopped_first)[:MOST_ACCOUNTS] for run, accounts in found.items()}


def _stopped_first(account: Account) -> tuple[bool, float, int]:
    changed = account.status_changed_at.timestamp() if account.status_changed_at else 0.0
    return account.status == Account.Status.ACTIVE, -changed, account.pk


def _page(account: Account) -> str:
    return reverse("accounts:page", args=[account.pk])
