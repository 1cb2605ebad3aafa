"""Chooses another account for follow-ups whose account is not able to send any more (SPEC S7)."""

from collections.abc import Sequence
from datetime import datetime

from accounts.models import Account
from accounts.recipients.contacts import last_to_talk
from delivery.audience import GROUPS
from delivery.models import RunTarget
from delivery.planning import rooms
from reminders.models import Reminder


def able(reminder: Reminder) -> list[int]:
    """Return the accounts of a reminder that are able to send, in their order."""
    rows = reminder.reminder_accounts.order_by("position", "id")
    rows = rows.filter(account__status=Account.Status.ACTIVE, account__archived_at=None)
    return list(rows.values_list("account_id", flat=True))


def others(reminder: Reminder, firsts: Sequence[RunTarget], *, parts: int, now: datetime) -> dict[int, int]:
    """Return, by target, the account that follows up instead of one that is not able to send.

    The account that talked with the recipient last goes first, then the one with most room today. A recipient that
    only one account reaches stays with it, and so does everybody where no other account is able.
    """
    stuck = [first for first in firsts if not _can_send(first.account) and first.recipient.account_id is None]
    ids = able(reminder) if stuck else []
    if not ids:
        return {}
    deal = rooms.deal(ids, reminder.action, parts=parts, now=now)
    return {
        first.pk: last_to_talk(first.recipient, ids) or deal.next(group=first.recipient.kind in GROUPS)
        for first in stuck
    }


def _can_send(account: Account) -> bool:
    return account.status == Account.Status.ACTIVE and account.archived_at is None
