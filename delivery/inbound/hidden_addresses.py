"""Asks services who is behind the hidden addresses that wrote to us, where a service can be asked."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta

from django.conf import settings
from django.db.models import F, QuerySet, Window
from django.db.models.functions import RowNumber
from django.utils import timezone

from accounts.models import Account
from activity.models import Inbound
from config.long_tasks import one_pass
from delivery.engine import wakeups
from delivery.inbound import aliases, store
from delivery.sessions import ask
from delivery.transports import kinds
from delivery.transports.base import Known, Transport, UnansweredError

ASKED_FOR = timedelta(minutes=10)  # after a message came; later, we only learn from other reports
MOST_ACCOUNTS, MOST_ADDRESSES = 20, 20


def ask_all() -> None:
    """Ask for the accounts with waiting messages: a few of them at once, owners in turn."""
    with one_pass("hidden addresses") as free:
        if free:
            _ask(_accounts())


def _accounts() -> Sequence[Account]:
    able = [kind for kind, transport in kinds().items() if transport.default_capabilities.hidden_numbers]
    accounts = Account.objects.active().filter(
        transport__in=able, archived_at=None, pk__in=_lately().values("account")
    )
    turn = Window(RowNumber(), partition_by="owner", order_by=F("pk").asc())
    return list(accounts.annotate(turn=turn).order_by("turn", "pk")[:MOST_ACCOUNTS])


def _lately() -> QuerySet[Inbound]:
    return Inbound.objects.filter(created_at__gt=timezone.now() - ASKED_FOR).exclude(waits_for="")


def _ask(accounts: Sequence[Account]) -> None:
    """Ask all services at once, and learn from each answer as it comes."""
    hidden = {account.pk: _hidden(account) for account in accounts}
    for account, known in ask.answers(accounts, lambda account, line: _behind(line, hidden[account.pk])):
        if isinstance(known, ask.NoAnswerError):
            continue  # asked again in a minute
        if aliases.learn(account, known, aliases.Source.ASKED):
            wakeups.send_on_commit(store.WORK, account.pk)


def _hidden(account: Account) -> list[str]:
    waiting = _lately().filter(account=account).order_by("waits_for")
    return list(waiting.values_list("waits_for", flat=True).distinct()[:MOST_ADDRESSES])


async def _behind(line: Transport, hidden: Sequence[str]) -> list[Known]:
    """Return whom the service names in time; raise UnansweredError where it does not answer at all."""
    found: list[Known] = []
    ends = asyncio.get_running_loop().time() + settings.ANSWER_TIMEOUT_SECONDS
    for each in hidden:
        try:
            found.append(Known(hidden=each, address=await line.number_behind(each)))
        except UnansweredError:
            if not found:
                raise
            break
        if asyncio.get_running_loop().time() > ends:
            break
    return found
