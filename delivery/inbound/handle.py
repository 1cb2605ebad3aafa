"""Handles what services reported, except messages: receipts, session changes, locks and consent.

Messages are left to `reminders.conversations.replies`, which takes up all that waits, one event after another in the
order in which they came. Each event is handled in the transaction that marks it handled, under its lock: two tasks at
once, or a task that is delivered twice, handle it once.
"""

from collections.abc import Iterator
from datetime import timedelta

from django.db.models import Q, QuerySet
from django.utils import timezone

from accounts.addresses import BadAddressError, canonical
from accounts.models import Account, Recipient
from activity.models import Inbound
from delivery.inbound import aliases, preferences, receipts, store
from delivery.limits import slow_down
from delivery.sessions import connect, first_contacts, own_limits
from delivery.transports.base import AccountState

MOST = 500  # at a time
WORTH_TRYING = timedelta(days=1)


def waiting_accounts() -> Iterator[int]:
    """Yield the accounts for which events wait: because their task was lost, or because they came too early."""
    accounts = [rows.order_by().values("account_id") for rows in (_waiting(), aliases.resolvable())]
    for row in accounts[0].union(accounts[1]):
        yield row["account_id"]


def waiting_events(account_id: int) -> list[int]:
    """Return the ids of an account's events that wait, without receipts: the oldest first, `MOST` of each kind.

    Events that waited for a hidden address, behind which somebody is known now, come before the others.
    """
    waiting = _waiting().filter(account_id=account_id).exclude(kind=Inbound.Kind.RECEIPT)
    known = aliases.resolvable().filter(account_id=account_id)
    return list(dict.fromkeys([*_oldest(known), *_oldest(waiting)]))


def _oldest(rows: QuerySet[Inbound]) -> QuerySet[Inbound, int]:
    return rows.order_by("id").values_list("pk", flat=True)[:MOST]


def _waiting() -> QuerySet[Inbound]:
    return Inbound.objects.filter(handled_at=None, created_at__gt=timezone.now() - WORTH_TRYING)


def lock_event(inbound_id: int) -> Inbound | None:
    """Lock an event until the transaction ends; return None where another task holds it or has handled it."""
    locked = Inbound.objects.select_for_update(skip_locked=True, of=("self",)).select_related("account")
    return locked.filter(Q(handled_at=None) | ~Q(waits_for=""), pk=inbound_id).first()


def handle_event(inbound: Inbound) -> None:
    """Handle a locked event that is not a message, and mark it handled."""
    account = inbound.account
    match inbound.kind:
        case Inbound.Kind.CONSENT:
            inbound.waits_for = _unknown_sender(account, inbound)
            people = recipients_of(account, inbound.sender)
            inbound.recipient = people[0] if people else None
            inbound.save(update_fields=["recipient", "waits_for"])
            preferences.take_over(account, inbound, people)
        case Inbound.Kind.SESSION if inbound.state == store.SLOW_DOWN:
            slow_down.asked_by_report(account, at=inbound.at, reason=inbound.text)
        case Inbound.Kind.SESSION if inbound.state == store.OWN_LIMITS:
            own_limits.later(account)
        case Inbound.Kind.SESSION:
            connect.hear(account, AccountState(inbound.state), at=inbound.at, reason=inbound.text)
            if inbound.state == AccountState.WORKING:
                own_limits.later(account)  # a service that changes them says that the session works
        case Inbound.Kind.LOCK:
            first_contacts.lock(account, at=inbound.at, until=inbound.until)
    inbound.handled_at = timezone.now()
    inbound.save(update_fields=["handled_at"])


def find_recipient(inbound: Inbound) -> None:
    """Note on a locked message whose it is.

    A message in a group that waited for its sender was taken up before, and stays handled.
    """
    of_group = inbound.recipient_id is not None and bool(inbound.waits_for)
    inbound.recipient = _answered(inbound) or _spoken_for(inbound.account, inbound)
    if not of_group:
        inbound.handled_at = None
        inbound.waits_for = _unknown_sender(inbound.account, inbound)
    inbound.save(update_fields=["recipient", "handled_at", "waits_for"])


def _answered(inbound: Inbound) -> Recipient | None:
    """Return the recipient of our message that this one answers, from any address: people have several."""
    if not inbound.answers:
        return None
    found = receipts.targets_of(inbound.account_id, [inbound.answers]).get(inbound.answers)
    return Recipient.objects.filter(targets=found).first() if found else None


def _spoken_for(account: Account, inbound: Inbound) -> Recipient | None:
    """Return the recipient whose message this is.

    A message in a group belongs to the group: where the group is no recipient, the message answers nothing.
    """
    found = recipient_of(account, inbound.chat)
    return found if found or _is_shared(account, inbound) else recipient_of(account, inbound.sender)


def _is_shared(account: Account, inbound: Inbound) -> bool:
    """Return whether others read the chat too.

    A name of a chat that only the service understands is not the sender's address.
    """
    try:
        kind = canonical(account.channel, inbound.chat).kind
    except BadAddressError:
        return inbound.chat != inbound.sender
    return kind in {"group", "room"} or (kind == "profile" and inbound.chat != inbound.sender)


def _unknown_sender(account: Account, inbound: Inbound) -> str:
    """Return the hidden address of the sender while nobody is known behind it, else ''."""
    if inbound.recipient_id is not None or (inbound.chat and _is_shared(account, inbound)):
        return ""
    return inbound.sender if aliases.is_unknown(account, inbound.sender) else ""


def recipient_of(account: Account, address: str) -> Recipient | None:
    """Return the recipient of the account's owner at an address as a service writes it."""
    return next(iter(recipients_of(account, address)), None)


def recipients_of(account: Account, address: str) -> list[Recipient]:
    """Return all recipients of the owner who are the person at an address; the one with exactly it comes first."""
    names = aliases.names_of(account, address)
    rows = Recipient.objects.filter(owner=account.owner_id, channel=account.channel, address__in=names)
    return sorted(rows, key=lambda row: names.index(row.address))
