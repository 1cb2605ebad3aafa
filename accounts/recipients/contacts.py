"""Notes which account talked with a recipient last, and which accounts are members of a group (SPEC S7, S8).

The engine notes what it sends in the statement that records it (`delivery/engine/recording.py`).
"""

from collections.abc import Collection
from datetime import datetime
from typing import Any

from django.db import connection

from accounts.models import Account, Contact, Recipient

TALKED = """
INSERT INTO accounts_contact (recipient_id, account_id, talked_at) VALUES (%(recipient)s, %(account)s, %(at)s)
ON CONFLICT (recipient_id, account_id) DO UPDATE SET talked_at = EXCLUDED.talked_at
WHERE COALESCE(accounts_contact.talked_at < EXCLUDED.talked_at, true)
"""
MEMBER = """
INSERT INTO accounts_contact (recipient_id, account_id, member_at)
SELECT id, %(account)s, %(at)s FROM accounts_recipient
WHERE owner_id = %(owner)s AND channel = %(channel)s AND address = ANY(%(addresses)s) AND kind IN ('group', 'room')
ORDER BY id
ON CONFLICT (recipient_id, account_id) DO UPDATE SET member_at = EXCLUDED.member_at
"""


def last_to_talk(recipient: Recipient, account_ids: Collection[int]) -> int | None:
    """Return which of these accounts talked with a recipient last, if any did."""
    rows = Contact.objects.filter(recipient=recipient, account__in=account_ids, talked_at__isnull=False)
    return rows.order_by("-talked_at", "account_id").values_list("account_id", flat=True).first()


def talked(recipient: Recipient, account_id: int, *, at: datetime) -> None:
    """Note that a recipient wrote to an account; the last thing of its transaction, after the locks of runs."""
    _execute(TALKED, {"recipient": recipient.pk, "account": account_id, "at": at})


def are_members(account: Account, addresses: Collection[str], *, at: datetime) -> None:
    """Note that an account is a member of these groups."""
    arguments = {"account": account.pk, "owner": account.owner_id, "channel": account.channel}
    _execute(MEMBER, arguments | {"addresses": list(addresses), "at": at})


def forget_members(account: Account, *, seen_before: datetime) -> None:
    """Forget the groups of which an account was last seen to be a member before this time: it has left them."""
    Contact.objects.filter(account=account, member_at__lt=seen_before).update(member_at=None)


def _execute(statement: str, arguments: dict[str, Any]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, arguments)
