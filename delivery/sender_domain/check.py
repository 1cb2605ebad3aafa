"""Checks the sender's domain of e-mail accounts: when one is added or changed, and once a day.

The findings are kept for the account's page. They stop nothing: many send well without a good record.
"""

import asyncio
import time
from datetime import datetime, timedelta

import structlog
from django.conf import settings
from django.db.models import F, Q
from django.utils import timezone

from accounts.encryption import UnreadableSecretError
from accounts.models import Account, SenderDomain
from accounts.models.account import Channel
from config.long_tasks import one_pass
from delivery.engine import wakeups
from delivery.sender_domain.judge import Found, judge
from delivery.sender_domain.lookup import NoDnsAnswerError, look_up
from delivery.sessions import calls
from delivery.transports.mail.composing import AddressError, mailbox

log = structlog.get_logger(__name__)

TASK = "delivery.check_sender_domain"
AGAIN_AFTER = timedelta(days=1)
AGAIN_AFTER_TROUBLE = timedelta(hours=1)
MOST = 50  # accounts of one round
SHIFT_SECONDS = 60.0  # of one round: where the DNS is silent, the next round continues


def later(account: Account) -> None:
    """Have the domain of an account checked by a worker as soon as this transaction is over."""
    if account.channel == Channel.EMAIL:
        wakeups.send_on_commit(TASK, account.pk)


def check_one(account_id: int) -> None:
    """Check one account, if it is still there."""
    if account := Account.objects.filter(pk=account_id, archived_at=None).first():
        check(account)


def check_due(*, now: datetime | None = None) -> int:
    """Check accounts that were not checked for a day, or had no answer, the oldest first; return how many."""
    with one_pass("sender domains") as free:
        return _check_due(now or timezone.now()) if free else 0


def _check_due(now: datetime) -> int:
    old = Q(sender_domain__checked_at__lt=now - AGAIN_AFTER)
    unanswered = ~Q(sender_domain__trouble="") & Q(sender_domain__checked_at__lt=now - AGAIN_AFTER_TROUBLE)
    accounts = Account.objects.filter(channel=Channel.EMAIL, archived_at=None)
    due = accounts.filter(Q(sender_domain=None) | old | unanswered)
    ends, number = time.monotonic() + SHIFT_SECONDS, 0
    for account in due.order_by(F("sender_domain__checked_at").asc(nulls_first=True), "pk")[:MOST]:
        if time.monotonic() > ends:
            break
        check(account)
        number += 1
    return number


def check(account: Account) -> SenderDomain:
    """Look up the domain of an account and keep the findings; none for an account without a sender's address.

    Where the DNS does not answer, the last findings of the same domain stay, with the trouble. Raises BusyError.
    """
    domain, selector = domain_of(account)
    values: dict[str, object] = {"domain": domain, "checked_at": timezone.now(), "trouble": ""}
    try:
        found = _looked_up(domain, selector) if domain else None
        values["findings"] = [finding.as_json() for finding in judge(found)] if found else []
    except NoDnsAnswerError as error:
        log.warning("sender_domain_not_looked_up", account=account.pk, domain=domain, reason=str(error))
        values["trouble"] = str(error)[:200]
        if not SenderDomain.objects.filter(account=account, domain=domain).exists():
            values["findings"] = []
    return SenderDomain.objects.update_or_create(account=account, defaults=values)[0]


def _looked_up(domain: str, selector: str) -> Found:
    with calls.calling():
        calls.release_connection()
        return asyncio.run(look_up(domain, selector=selector, servers=settings.DNS_SERVERS))


def domain_of(account: Account) -> tuple[str, str]:
    """Return the domain that an account sends from, in ASCII, and the selector of its DKIM key; both may be empty."""
    try:
        credentials = account.credentials
        domain = mailbox(str(credentials.get("from_address", ""))).rpartition("@")[2].rstrip(".").lower()
    except (UnreadableSecretError, AddressError):
        return "", ""
    return (domain, str(credentials.get("dkim_selector", "")).strip()) if "." in domain else ("", "")
