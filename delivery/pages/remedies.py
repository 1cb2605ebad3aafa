"""The buttons beside a paused run that end the cause of its pause."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from django.urls import reverse

from accounts.models import Account
from delivery.models import Run
from delivery.pages.account_facts import action_of
from delivery.states import PauseReason, RunStatus

MOST_ACCOUNTS = 3  # with buttons of their own


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """A button or a link: what it does, where, and whether it is a POST."""

    label: str
    url: str
    icon: str
    post: bool = False


def remedies_of(run: Run) -> list[Remedy]:
    """Return what a person can do about the cause of a pause, besides Resume and Cancel."""
    if run.status != RunStatus.PAUSED or run.canceled_at is not None:
        return []
    return [*_of_accounts(run), *_of_the_reason(run)]


def _of_accounts(run: Run) -> Iterator[Remedy]:
    """Yield the next action of each account that cannot send, and a link to those in trouble."""
    for account in _accounts(run):
        action = action_of(account)
        if action is not None and account.status != Account.Status.ACTIVE:
            url = reverse(action.url, args=[account.pk])
            yield Remedy(label=f"{action.label} {account}", url=url, icon=action.icon, post=action.post)
        elif account.trouble_kind or account.archived_at is not None:
            yield Remedy(label=f"Open {account}", url=_page(account), icon="accounts")


def _of_the_reason(run: Run) -> Iterator[Remedy]:
    match run.pause_reason:
        case PauseReason.ERROR_RATE:
            yield from _of_errors(run)
        case PauseReason.DAILY_CAP:
            for account in _accounts(run):
                url = reverse("accounts:limits", args=[account.pk])
                yield Remedy(label=f"Limits of {account}", url=url, icon="gauge")
        case PauseReason.WINDOW_CLOSED:
            yield Remedy(label="Widen the hours", url=reverse("runs:hours", args=[run.pk]), icon="clock")


def _of_errors(run: Run) -> Iterator[Remedy]:
    for status, label in (("failed", "See {} failed"), ("unconfirmed", "Decide about {} unconfirmed")):
        if count := getattr(run, status):
            url = f"{reverse('runs:page', args=[run.pk])}?status={status}#targets"
            yield Remedy(label=label.format(f"{count:,}"), url=url, icon=status)


def _accounts(run: Run) -> Sequence[Account]:
    shares = Account.objects.filter(run_accounts__run=run, run_accounts__open=True)
    stopped_first = shares.defer("credentials", "webhook").order_by("-status_changed_at", "pk")
    found = sorted(stopped_first[:50], key=lambda account: account.status == Account.Status.ACTIVE)
    return found[:MOST_ACCOUNTS]


def _page(account: Account) -> str:
    return reverse("accounts:page", args=[account.pk])
