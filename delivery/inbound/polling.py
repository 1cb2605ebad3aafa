"""Fetches incoming messages from services that cannot report them, such as Matrix and mailboxes."""

from collections import Counter
from collections.abc import Iterable, Sequence

import structlog
from django.db import transaction
from django.db.models import F, Window
from django.db.models.functions import RowNumber
from django.utils import timezone

from accounts.models import Account
from activity import counters
from config.long_tasks import one_pass
from delivery.inbound import store
from delivery.sessions import ask
from delivery.transports import kinds
from delivery.transports.base import Polled

log = structlog.get_logger(__name__)

MOST_AT_ONCE = 50
MOST_OF_ONE_OWNER = 10
MOST_LOOKED_AT = 500


def poll_all() -> None:
    """Ask for all accounts that must be polled: those that waited longest first, owners in turn.

    All are asked at once, and each answer is stored as it comes: a silent service delays no other account. While a
    pass waits for silent services, no other begins in this process.
    """
    with one_pass("poll") as free:
        if free:
            _poll_all()


def _poll_all() -> None:
    polled = [kind for kind, transport in kinds().items() if transport.default_capabilities.polling]
    accounts = Account.objects.active().filter(transport__in=polled, archived_at=None)
    longest = F("polled_at").asc(nulls_first=True)
    turn = Window(RowNumber(), partition_by="owner", order_by=longest)
    looked_at = list(accounts.annotate(turn=turn).order_by("turn", longest)[:MOST_LOOKED_AT])
    askable = [account for account in looked_at if ask.capabilities_of(account).polling]
    # Accounts without a mailbox to read go to the end of the queue, so that they delay no other account.
    others = {account.pk for account in looked_at} - {account.pk for account in askable}
    Account.objects.filter(pk__in=others).update(polled_at=timezone.now())
    _ask(_fair(askable))


def poll(account: Account) -> None:
    """Store the events since the last poll; raise NoAnswerError. An event that comes twice is stored once."""
    Account.objects.filter(pk=account.pk).update(polled_at=timezone.now())
    _keep(account, ask.ask(account, lambda transport: transport.poll(account.poll_since)))


def _fair(accounts: Iterable[Account]) -> list[Account]:
    """Choose as many accounts as are asked at once, of each owner not more than a share."""
    chosen, of_owner = list[Account](), Counter[int]()
    for account in accounts:
        if of_owner[account.owner_id] < MOST_OF_ONE_OWNER:
            of_owner[account.owner_id] += 1
            chosen.append(account)
    return chosen[:MOST_AT_ONCE]


def _ask(accounts: Sequence[Account]) -> None:
    ids = {account.pk for account in accounts}
    Account.objects.filter(pk__in=ids).update(polled_at=timezone.now())
    for account, polled in ask.answers(accounts, lambda account, line: line.poll(account.poll_since)):
        # The engine notices a silent service too, and the account's page says so.
        if isinstance(polled, ask.NoAnswerError):
            log.info("not_polled", account=account.pk, reason=str(polled))
        else:
            _keep_alone(account, polled)


def _keep_alone(account: Account, polled: Polled) -> None:
    """Store the events of one account; an error here must not stop the other accounts."""
    try:
        _keep(account, polled)
    except Exception:
        log.exception("poll_failed", account=account.pk)


def _keep(account: Account, polled: Polled) -> None:
    with transaction.atomic():
        here = Account.objects.filter(pk=account.pk, poll_since=account.poll_since)
        # Another process that polled at the same time and was first has stored it all.
        if here.update(poll_since=polled.since):
            store.store(account, polled.events)
            for reason, number in Counter(polled.passed_over).items():
                counters.tell("messages_passed_over", reason=reason, number=number, account=account.pk)
