"""Reads the ledger, and adds rows for events outside a run's own record."""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import Min, QuerySet

from activity.models import Attempt

LONGEST_SEND = timedelta(minutes=5)
MOST_LOOKED_AT = 1_000

# A limit counts what left or may have left (SPEC P14). `NEVER_LEFT_SQL` is for statements.
NEVER_LEFT = (Attempt.Outcome.NOT_CONNECTED, Attempt.Outcome.UNREACHABLE)
NEVER_LEFT_SQL = ", ".join(f"'{outcome.value}'" for outcome in NEVER_LEFT)


def counted(account_id: int, action: str) -> QuerySet[Attempt]:
    """Return the messages that the limits of an account count."""
    rows = Attempt.objects.filter(account_id=account_id, action=action)
    return rows.exclude(outcome__in=NEVER_LEFT)


def seen_times(account_id: int, action: str, *, since: datetime) -> list[datetime]:
    """Return the latest times at which receivers saw messages, ascending."""
    rows = counted(account_id, action).filter(at__gte=since - LONGEST_SEND)
    times = [
        at + timedelta(milliseconds=took) for at, took in rows.order_by("at").values_list("at", "took_ms")
    ]
    return sorted(time for time in times if time >= since)


IN_BUCKETS = f"""
SELECT floor(LEAST(ceil(EXTRACT(EPOCH FROM at) * 1000) + took_ms + %(margin)s, %(now)s) / %(width)s)::bigint, count(*)
FROM activity_attempt
WHERE account_id = %(account)s AND action = %(action)s AND at >= %(since)s AND outcome NOT IN ({NEVER_LEFT_SQL})
GROUP BY 1
"""  # noqa: S608 - made of constants


def in_buckets(
    account_id: int, action: str, *, since: datetime, now_ms: int, margin_ms: int, width_ms: int
) -> dict[int, int]:
    """Count the messages of a long span by the buckets of `width_ms` in which receivers saw them at the latest.

    Clocks may differ by `margin_ms`: each message counts so much later, but not later than now.
    """
    arguments: dict[str, Any] = {
        "account": account_id,
        "action": action,
        "since": since - LONGEST_SEND,
        "now": now_ms,
        "margin": margin_ms,
        "width": width_ms,
    }
    with connection.cursor() as cursor:
        cursor.execute(IN_BUCKETS, arguments)
        return dict(cursor.fetchall())


def new_people(account_id: int, action: str, *, since: datetime) -> list[datetime]:
    """Return when each new person got their last message at the latest, ascending.

    Rows without a target, whose person is not known any more, count as one person each.
    """
    rows = counted(account_id, action).filter(at__gte=since - LONGEST_SEND, new_person__gt=0)
    last = dict[tuple[str, int], datetime]()
    for pk, person, at, took in rows.values_list("pk", "target__recipient_id", "at", "took_ms"):
        key, seen = ("person", person) if person else ("row", pk), at + timedelta(milliseconds=took)
        last[key] = max(seen, last.get(key, seen))
    return sorted(seen for seen in last.values() if seen >= since)


def latest_times(account_id: int, action: str, *, most: int) -> list[datetime]:
    """Return when the last `most` messages began, ascending."""
    rows = counted(account_id, action).order_by("-at")
    return list(rows.values_list("at", flat=True)[:most])[::-1]


def last_send(account_id: int, action: str) -> tuple[datetime, int] | None:
    """Return when the last message began, and the number of its attempt."""
    rows = Attempt.objects.filter(account_id=account_id, action=action).order_by("-at")
    return rows.values_list("at", "id").first()


def share_of_others(account_id: int, target_id: int, *, outcomes: Collection[str]) -> float:
    """Return the share of an account's other targets that met one of `outcomes` since this target did.

    The last `MOST_LOOKED_AT` attempts of the others count.
    """
    rows = Attempt.objects.filter(account_id=account_id)
    since = rows.filter(target_id=target_id, outcome__in=outcomes).aggregate(first=Min("at"))["first"]
    if since is None:
        return 0.0
    others = rows.filter(at__gte=since, target__isnull=False).exclude(target_id=target_id)
    met = list(others.order_by("-at").values_list("target_id", "outcome")[:MOST_LOOKED_AT])
    failed = {target for target, outcome in met if outcome in outcomes}
    return len(failed) / len({target for target, _ in met}) if met else 0.0


def count_since(account_id: int, action: str, *, since: datetime) -> int:
    """Return the messages of a day that began at `since`. One that was under way then may have arrived in the day."""
    rows = counted(account_id, action)
    under_way = rows.filter(at__gte=since - LONGEST_SEND, at__lt=since).values_list("at", "took_ms")
    late = sum(1 for at, took in under_way if at + timedelta(milliseconds=took) >= since)
    return rows.filter(at__gte=since).count() + late
