"""Counts in the ledger what accounts have sent in the last 24 hours, 7 days and 30 days (SPEC P13)."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connection

from accounts.models import Account
from activity.ledger import NEVER_LEFT_SQL, count_since
from delivery.pacing import BUCKETS, LONG_SPANS, Limits

Key = tuple[int, str]  # an account and an action
Sent = Sequence[
    tuple[datetime, int]
]  # when the last messages of a part of a span left, and how many there were


def long_span(name: str) -> timedelta:
    """Return the length of a long span; an hour of the limits is sixty of their minutes."""
    return timedelta(seconds=LONG_SPANS[name] * 60 * settings.MINUTE_SECONDS)


def long_caps(limits: Limits) -> dict[str, int]:
    """Return the caps of long spans that are set, by their names."""
    return {name: cap for name in LONG_SPANS if (cap := getattr(limits, name))}


SENT = f"""
SELECT w.account_id, w.action, w.name, max(a.at), count(*)
FROM unnest(%(accounts)s::bigint[], %(actions)s::text[], %(names)s::text[], %(since)s::timestamptz[],
            %(width)s::float[]) AS w(account_id, action, name, since, width)
JOIN activity_attempt a ON a.account_id = w.account_id AND a.action = w.action AND a.at > w.since
 AND a.outcome NOT IN ({NEVER_LEFT_SQL})
GROUP BY w.account_id, w.action, w.name, floor(EXTRACT(EPOCH FROM a.at) / w.width)
ORDER BY 4
"""  # noqa: S608 - made of constants


def sent(
    which: Sequence[tuple[Account, str]], limits: Mapping[Key, Limits], *, now: datetime
) -> dict[Key, dict[str, Sent]]:
    """Return what each account has sent in the long spans that have a cap, by their names, in one query."""
    asked = [
        (account.pk, action, name)
        for account, action in which
        for name in long_caps(limits[account.pk, action])
    ]
    found: dict[Key, dict[str, list[tuple[datetime, int]]]] = {
        (account.pk, action): {name: [] for name in long_caps(limits[account.pk, action])}
        for account, action in which
    }
    if asked:
        with connection.cursor() as cursor:
            cursor.execute(SENT, _arguments(asked, now))
            for account_id, action, name, at, count in cursor.fetchall():
                found[account_id, action][name].append((at.astimezone(UTC), count))
    return {key: dict(spans) for key, spans in found.items()}


def _arguments(asked: Sequence[tuple[int, str, str]], now: datetime) -> dict[str, Any]:
    return {
        "accounts": [account_id for account_id, _, _ in asked],
        "actions": [action for _, action, _ in asked],
        "names": [name for _, _, name in asked],
        "since": [now - long_span(name) for _, _, name in asked],
        "width": [long_span(name).total_seconds() / BUCKETS for _, _, name in asked],
    }


def is_full(account: Account, action: str, limits: Limits, *, parts: int, now: datetime) -> bool:
    """Decide whether `parts` more messages now would cross the cap of a long span."""
    return any(
        count_since(account.pk, action, since=now - long_span(name)) + parts > cap
        for name, cap in long_caps(limits).items()
    )
