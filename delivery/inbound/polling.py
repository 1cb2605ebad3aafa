"""Fetches what came in from services that cannot report it, as Matrix and mailboxes."""

from contextlib import suppress

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from accounts.models import Account
from delivery import asking
from delivery.inbound import intake
from delivery.transports import kinds

MOST_AT_ONCE = 50
MOST_LOOKED_AT = 500


def poll_all() -> None:
    """Ask for all accounts that must be asked, those first that have waited longest."""
    polled = [kind for kind, transport in kinds().items() if transport.default_capabilities.polling]
    accounts = Account.objects.active().filter(transport__in=polled, archived_at=None)
    looked_at = list(accounts.order_by(F("polled_at").asc(nulls_first=True))[:MOST_LOOKED_AT])
    askable = [account for account in looked_at if asking.capabilities_of(account).polling]
    # Those without a mailbox to read go to the end of the line, so that they hold up nobody.
    others = {account.pk for account in looked_at} - {account.pk for account in askable}
    Account.objects.filter(pk__in=others).update(polled_at=timezone.now())
    for account in askable[:MOST_AT_ONCE]:
        with suppress(asking.NoAnswerError):  # the engine notices too, and says so where people look
            poll(account)


def poll(account: Account) -> None:
    """Take in what came since the last time; raises NoAnswerError. What is told twice is kept once."""
    Account.objects.filter(pk=account.pk).update(polled_at=timezone.now())
    polled = asking.ask(account, lambda transport: transport.poll(account.poll_since))
    with transaction.atomic():
        here = Account.objects.filter(pk=account.pk, poll_since=account.poll_since)
        # Whoever asked at the same time and was first has kept it all.
        if here.update(poll_since=polled.since):
            intake.store(account, polled.events)
