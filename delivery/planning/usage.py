"""What accounts have used of their limits by the ledger, and how fast their services were: a query each."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connection

from accounts.models import Account
from delivery.planning.observed import seconds_per_message
from delivery.window import window_start_at

LEARNS_FROM = timedelta(days=7)
LATEST = 100  # messages of an account that say how fast its service is

Which = tuple[Account, str]  # an account and an action
Key = tuple[int, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """Messages of today, in the account's zone, and of the last hour, with the first of these."""

    day: int = 0
    hour: int = 0
    hour_since: datetime | None = None


USED = """
SELECT w.account_id, w.action,
       (SELECT count(*) FROM activity_attempt a
        WHERE a.account_id = w.account_id AND a.action = w.action AND a.at >= w.day_start),
       hour.used, hour.since
FROM unnest(%(accounts)s::bigint[], %(actions)s::text[], %(days)s::timestamptz[]) AS w(account_id, action, day_start)
CROSS JOIN LATERAL (
    SELECT count(*) AS used, min(a.at) AS since FROM activity_attempt a
    WHERE a.account_id = w.account_id AND a.action = w.action AND a.at > %(hour)s
) hour
"""


def used(which: Sequence[Which], *, now: datetime) -> dict[Key, Used]:
    """What each account has sent of each action."""
    rows = _ask(
        USED,
        which,
        days=[window_start_at(account.zone, 0, now) for account, _ in which],
        hour=now - timedelta(seconds=settings.MINUTE_SECONDS * 60),
    )
    return {(row[0], row[1]): Used(day=row[2], hour=row[3], hour_since=row[4]) for row in rows}


OBSERVED = """
SELECT w.account_id, w.action, latest.at, latest.took_ms
FROM unnest(%(accounts)s::bigint[], %(actions)s::text[]) AS w(account_id, action)
CROSS JOIN LATERAL (
    SELECT a.at, a.took_ms FROM activity_attempt a
    WHERE a.account_id = w.account_id AND a.action = w.action AND a.at > %(since)s
    ORDER BY a.at DESC LIMIT %(latest)s
) latest
ORDER BY latest.at
"""


def observed(which: Sequence[Which], *, now: datetime) -> dict[Key, float]:
    """The seconds per message that each account's service needed lately; nothing where its limits set the pace."""
    sends: dict[Key, list[tuple[datetime, int]]] = {}
    for account_id, action, at, took in _ask(OBSERVED, which, since=now - LEARNS_FROM, latest=LATEST):
        sends.setdefault((account_id, action), []).append((at, took))
    in_flight = {
        account.pk: account.group_concurrency or int(settings.GROUP_CONCURRENCY) for account, _ in which
    }
    return {key: seconds_per_message(sent, in_flight=in_flight[key[0]]) for key, sent in sends.items()}


def _ask(statement: str, which: Sequence[Which], **arguments: Any) -> list[tuple[Any, ...]]:
    named: dict[str, Any] = {
        "accounts": [account.pk for account, _ in which],
        "actions": [action for _, action in which],
        **arguments,
    }
    with connection.cursor() as cursor:
        cursor.execute(statement, named)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows
