"""Asks services for their own limits of an account: a quota of new chats, a lock of them, a limit of people (SPEC N3).

An answer is kept for a look. What is stricter than our own limits holds:

- a lock is that of `first_contacts.py`, with the end that the service says;
- of a quota, `sessions/new_chats.py` gives what is left; once it is used up it is a lock until the end of the cycle;
- a limit of people in 24 hours is one of messages here. All accounts of a portfolio share it, in equal parts.
"""

import json
from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from accounts.models import Account, OwnLimits
from activity.storable import storable
from config.long_tasks import one_pass
from delivery import live
from delivery.engine import wakeups
from delivery.sessions import ask, first_contacts
from delivery.transports import base, kinds

AGAIN_AFTER = timedelta(minutes=15)
MOST_ACCOUNTS = 50  # of one pass
MOST_SAID = 4_000  # characters
MOST_TOLD = 2**31 - 1  # what its column holds


def later(account: Account) -> None:
    """Have the service of an account asked by a worker, once this transaction is over, if it can be asked."""
    if account.transport in _able():
        wakeups.send_on_commit(first_contacts.READ_OWN_LIMITS, account.pk)


def read_one(account_id: int) -> None:
    """Ask for one account now, if it is still there."""
    rows = Account.objects.filter(pk=account_id, transport__in=_able(), archived_at=None)
    _read(list(rows))


def read_due() -> None:
    """Ask for active accounts that were not asked for a while, the longest ago first."""
    with one_pass("own limits") as free:
        if free:
            _read(_due(timezone.now()))


def _able() -> list[str]:
    return [kind for kind, transport in kinds().items() if transport.default_capabilities.own_limits]


def _due(now: datetime) -> Sequence[Account]:
    old = Q(own_limits=None) | Q(own_limits__tried_at__lt=now - AGAIN_AFTER)
    due = Account.objects.active().filter(old, transport__in=_able(), archived_at=None)
    return list(due.order_by(F("own_limits__tried_at").asc(nulls_first=True), "pk")[:MOST_ACCOUNTS])


def _read(accounts: Sequence[Account]) -> None:
    """Ask all services at once, and keep each answer as it comes."""
    asked_at = timezone.now()
    for account, told in ask.answers(accounts, lambda _, transport: transport.own_limits()):
        if isinstance(told, ask.NoAnswerError):
            _note_trouble(account, str(told), asked_at)
        else:
            keep(account, told, asked_at=asked_at)


def _note_trouble(account: Account, trouble: str, asked_at: datetime) -> None:
    """Keep why there was no answer; the last one still holds."""
    values = {"trouble": storable(trouble, 200), "tried_at": asked_at}
    OwnLimits.objects.update_or_create(account=account, defaults=values)


@transaction.atomic
def keep(account: Account, told: base.OwnLimits, *, asked_at: datetime) -> None:
    """Store what the service said, and let it hold."""
    values = {
        "new_chats": _kept(told.new_chats),
        "new_chats_used": _kept(told.new_chats_used),
        "new_chats_until": told.new_chats_until
        and first_contacts.foreseeable(told.new_chats_until, now=asked_at),
        "people_per_24_hours": _kept(told.people_per_24_hours),
        "said": storable(json.dumps(told.said, default=str), MOST_SAID),
        "trouble": "",
        "read_at": asked_at,
        "tried_at": asked_at,
    }
    OwnLimits.objects.update_or_create(account=account, defaults=values)
    if told.locked:
        first_contacts.lock(account, at=asked_at, until=told.locked_until)
    if told.new_chats is not None and told.new_chats_used >= told.new_chats:
        first_contacts.lock(account, at=asked_at, until=told.new_chats_until)
    _share_out(account)
    account_id, owner_id = account.pk, account.owner_id
    transaction.on_commit(lambda: live.account_changed(account_id, owner_id))


def _kept(count: int | None) -> int | None:
    """Return a number as it can be stored. A larger one is a mistake of the service, and limits nothing."""
    return None if count is None else min(max(0, count), MOST_TOLD)


def _share_out(account: Account) -> None:
    """Give each account of the owner on this service an equal part of the smallest limit of people.

    To which portfolio an account belongs is not told: they count as of one. A person counts as all messages to them.
    """
    rows = Account.objects.filter(owner=account.owner_id, transport=account.transport, archived_at=None)
    theirs = list(rows.order_by("pk").select_for_update(no_key=True).values_list("pk", flat=True))
    told = OwnLimits.objects.filter(account__in=theirs, people_per_24_hours__isnull=False)
    limits = list(told.values_list("people_per_24_hours", flat=True))
    share = max(1, min(each for each in limits if each is not None) // len(theirs)) if limits else None
    rows.exclude(service_per_24_hours=share).update(service_per_24_hours=share)
