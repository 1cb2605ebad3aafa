"""Asks services who is behind the hidden addresses that wrote to us, where a service can be asked."""

from collections.abc import Iterable
from contextlib import suppress
from datetime import timedelta

from django.utils import timezone

from accounts.models import Account
from activity.models import Inbound
from delivery.engine import wakeups
from delivery.inbound import aliases, store
from delivery.sessions import ask
from delivery.transports import kinds
from delivery.transports.base import Known

ASKED_FOR = timedelta(minutes=10)  # after a message came; later, we only learn from other reports
MOST_ACCOUNTS, MOST_ADDRESSES = 20, 20


def ask_all() -> None:
    """Ask for the accounts with waiting messages, a few of them at a time."""
    able = [kind for kind, transport in kinds().items() if transport.default_capabilities.hidden_numbers]
    lately = Inbound.objects.filter(created_at__gt=timezone.now() - ASKED_FOR).exclude(waits_for="")
    accounts = Account.objects.active().filter(
        transport__in=able, archived_at=None, pk__in=lately.values("account")
    )
    for account in accounts.order_by("pk")[:MOST_ACCOUNTS]:
        waiting = lately.filter(account=account).values_list("waits_for", flat=True).distinct()
        with suppress(ask.NoAnswerError):  # asked again in a minute
            _ask(account, waiting.order_by("waits_for")[:MOST_ADDRESSES])


def _ask(account: Account, hidden: Iterable[str]) -> None:
    """Learn who is behind the addresses; raises NoAnswerError."""
    addresses = list(hidden)
    with ask.line_to(account) as line:
        found = [Known(hidden=each, address=_behind(line, each)) for each in addresses]
    if aliases.learn(account, found, aliases.Source.ASKED):
        wakeups.send_on_commit(store.WORK, account.pk)


def _behind(line: ask.Line, hidden: str) -> str:
    return line.ask(lambda transport: transport.number_behind(hidden))
