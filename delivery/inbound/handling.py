"""Works on what services reported: receipts, session changes, locks, and messages, which are handed on.

Each event is handled in the transaction that marks it handled, under its lock: two tasks at once, or a task that is
delivered twice, handle it once.
"""

from collections.abc import Callable
from datetime import timedelta

import structlog
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from accounts.addresses import BadAddressError, canonical
from accounts.models import Account, Recipient
from activity.models import Inbound
from delivery import connection
from delivery.inbound import first_contacts, receipts
from delivery.transports.base import AccountState

log = structlog.get_logger(__name__)

MOST = 500  # at a time
WORTH_TRYING = timedelta(days=1)

Handle = Callable[[Inbound], None]


def work(account_id: int, *, on_message: Handle) -> None:
    """Handle all that waits for one account; what fails is logged, and tried again by the next sweep."""
    receipts.settle(account_id)
    waiting = _waiting().filter(account_id=account_id).exclude(kind=Inbound.Kind.RECEIPT)
    for inbound_id in waiting.order_by("id").values_list("pk", flat=True)[:MOST]:
        try:
            _handle(inbound_id, on_message)
        except Exception:  # one event that cannot be handled must not hold up the others
            log.exception("inbound_failed", inbound=inbound_id, account=account_id)


def sweep(*, on_message: Handle) -> None:
    """Handle what was left: receipts that came before their message was noted, and what a lost task had to do."""
    for account_id in _waiting().order_by().values_list("account_id", flat=True).distinct():
        work(account_id, on_message=on_message)


def _waiting() -> QuerySet[Inbound]:
    return Inbound.objects.filter(handled_at=None, created_at__gt=timezone.now() - WORTH_TRYING)


@transaction.atomic
def _handle(inbound_id: int, on_message: Handle) -> None:
    locked = Inbound.objects.select_for_update(skip_locked=True, of=("self",)).select_related("account")
    inbound = locked.filter(pk=inbound_id, handled_at=None).first()
    if inbound is None:
        return
    account = inbound.account
    match inbound.kind:
        case Inbound.Kind.MESSAGE:
            inbound.recipient = _spoken_for(account, inbound)
            inbound.save(update_fields=["recipient"])
            on_message(inbound)
            return
        case Inbound.Kind.SESSION:
            connection.hear(account, AccountState(inbound.state), at=inbound.at, reason=inbound.text)
        case Inbound.Kind.LOCK:
            first_contacts.lock(account, at=inbound.at, until=inbound.until)
    inbound.handled_at = timezone.now()
    inbound.save(update_fields=["handled_at"])


def _spoken_for(account: Account, inbound: Inbound) -> Recipient | None:
    """Whose message it is. One in a group belongs to the group: where that is no recipient, it answers nothing."""
    found = recipient_of(account, inbound.chat)
    return found if found or _is_shared(account, inbound.chat) else recipient_of(account, inbound.sender)


def _is_shared(account: Account, chat: str) -> bool:
    try:
        return canonical(account.channel, chat).kind in {"group", "room"}
    except BadAddressError:
        return False  # a name that the service alone understands


def recipient_of(account: Account, address: str) -> Recipient | None:
    """The recipient of the account's owner at an address as a service writes it."""
    try:
        found = canonical(account.channel, address)
    except BadAddressError:
        return None
    return Recipient.objects.filter(
        owner=account.owner_id, channel=account.channel, address=found.text
    ).first()
