"""Counts how many new chats a service's own quota still allows an account (SPEC N3).

The service said once how many were used; those that began since then are counted from our own rows, those under way
included. A chat is new where the account never wrote to the person and they never wrote to us.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from accounts.models import Account
from activity.ledger import NEVER_LEFT_SQL
from delivery.engine.sql import execute
from delivery.sessions import first_contacts

OVERLAP = timedelta(minutes=5)  # before the service was asked: its own count may lag behind

# A cycle that is over counts from its end, until the service says more of the next one.
LEFT = f"""
SELECT own.new_chats - own.used - (
    SELECT count(DISTINCT t.recipient_id)
    FROM delivery_runtarget t JOIN accounts_recipient p ON p.id = t.recipient_id
    WHERE t.account_id = own.account_id AND p.kind NOT IN ('group', 'room')
      AND (p.last_inbound_at IS NULL OR p.last_inbound_at >= own.since)
      AND (t.status = 'sending' OR t.id IN (
          SELECT a.target_id FROM activity_attempt a
          WHERE a.account_id = own.account_id AND a.at >= own.since AND a.outcome NOT IN ({NEVER_LEFT_SQL})
      ))
      AND NOT EXISTS (
          SELECT 1 FROM delivery_runtarget earlier
          WHERE earlier.recipient_id = t.recipient_id AND earlier.account_id = t.account_id
            AND earlier.status = 'sent' AND earlier.error = '' AND earlier.returned_at IS NULL
            AND earlier.settled_at < own.since
      )
), own.until
FROM (
    SELECT o.account_id, o.new_chats, CASE WHEN o.new_chats_until > %(now)s THEN o.new_chats_until END AS until,
           CASE WHEN o.new_chats_until <= %(now)s THEN 0 ELSE o.new_chats_used END AS used,
           CASE WHEN o.new_chats_until <= %(now)s THEN o.new_chats_until ELSE o.read_at - %(overlap)s END AS since
    FROM accounts_ownlimits o
    WHERE o.account_id = %(account)s AND o.new_chats IS NOT NULL AND o.read_at IS NOT NULL
) own
"""  # noqa: S608 - made of constants


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """The new chats that are left of a quota, and when its cycle ends, if that is known."""

    left: int
    until: datetime | None


def quota(account_id: int, *, now: datetime) -> Quota | None:
    """Return what is left of the quota of the account's service; None where it has none."""
    rows = execute(LEFT, {"account": account_id, "now": now, "overlap": OVERLAP})
    return Quota(left=max(0, rows[0][0]), until=rows[0][1]) if rows else None


def left(account: Account, *, now: datetime) -> int | None:
    """Return how many new chats may begin; where there is none left, first contacts wait for the end of the cycle."""
    found = quota(account.pk, now=now)
    if found is None:
        return None
    if found.left == 0:
        first_contacts.lock(account, at=now, until=found.until)
    return found.left
