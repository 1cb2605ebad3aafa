"""Fetches what came in from services that cannot report it, as Matrix."""

from contextlib import suppress

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from accounts.models import Account
from delivery import asking
from delivery.inbound import intake
from delivery.transports import kinds

MOST_AT_ONCE = 50


def poll_all() -> None:
    """Ask for all accounts that must be asked, those first that have waited longest."""
    polled = [kind for kind, transport in kinds().items() if transport.default_capabilities.polling]
    accounts = Account.objects.active().filter(transport__in=polled, archived_at=None)
    for account in accounts.order_by(F("polled_at").asc(nulls_first=True))[:MOST_AT_ONCE]:
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
