"""Reads the ledger, and adds rows for events outside a run's own record."""

from collections.abc import Collection
from datetime import datetime, timedelta

from django.db.models import Min

from activity.models import Attempt

LONGEST_SEND = timedelta(minutes=5)
MOST_LOOKED_AT = 1_000


def seen_times(account_id: int, action: str, *, since: datetime) -> list[datetime]:
    """Return the latest times at which receivers saw messages, ascending."""
    rows = Attempt.objects.filter(account_id=account_id, action=action, at__gte=since - LONGEST_SEND)
    times = [
        at + timedelta(milliseconds=took) for at, took in rows.order_by("at").values_list("at", "took_ms")
    ]
    return sorted(time for time in times if time >= since)


def latest_times(account_id: int, action: str, *, most: int) -> list[datetime]:
    """Return when the last `most` messages began, ascending."""
    rows = Attempt.objects.filter(account_id=account_id, action=action).order_by("-at")
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
    rows = Attempt.objects.filter(account_id=account_id, action=action)
    under_way = rows.filter(at__gte=since - LONGEST_SEND, at__lt=since).values_list("at", "took_ms")
    late = sum(1 for at, took in under_way if at + timedelta(milliseconds=took) >= since)
    return rows.filter(at__gte=since).count() + late
