"""Counts the messages that left in each of the last 24 hours.

Hours that are over are counted once and kept in Redis: the ledger of a busy day has too many rows to count them each
time a page is opened. Without Redis they are counted each time.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connection
from django.utils import timezone
from redis import RedisError

from accounts.models import User
from accounts.roles import owners_seen_by
from activity.ledger import LONGEST_SEND
from config.redis.client import client

HOUR = timedelta(hours=1)
HOURS = 24
KEPT_SECONDS = 26 * 3600
EVERYBODY = "all"  # staff see all owners' messages

# Answered from the indexes `attempt_of_owner` and `attempt_by_time` alone, without reading the rows.
COUNT = """
SELECT date_trunc('hour', at, 'UTC'), count(*) FROM activity_attempt
WHERE {owner} at >= %(since)s AND at < %(until)s GROUP BY 1
"""


def last_day(user: User, now: datetime) -> list[tuple[str, int]]:
    """Return a label in the reader's zone and a number for each hour; the present hour comes last."""
    names: list[int | str] = [EVERYBODY] if user.is_staff else [*owners_seen_by(user)]
    this_hour = now.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    hours = [this_hour - HOUR * back for back in range(HOURS - 1, -1, -1)]
    counts: Counter[datetime] = Counter()
    for name in names:
        counts.update(_counts(name, hours, now))
    return [(_label(hour), counts[hour]) for hour in hours]


def _label(hour: datetime) -> str:
    return f"{timezone.localtime(hour):%H:%M}"


def _counts(name: int | str, hours: list[datetime], now: datetime) -> Mapping[datetime, int]:
    key = f"paceline:hours:{name}"
    kept = _kept(key, hours)
    missing = [hour for hour in hours if hour not in kept]
    if not missing:
        return kept
    counted = _count(name, missing[0], hours[-1] + HOUR)
    fresh = {hour: counted.get(hour, 0) for hour in missing}
    # A row is written when its message has been sent, so an hour is complete a little after it is over.
    _keep(key, {hour: count for hour, count in fresh.items() if hour + HOUR + LONGEST_SEND < now}, hours[0])
    return kept | fresh


def _count(name: int | str, since: datetime, until: datetime) -> dict[datetime, int]:
    owner = "" if name == EVERYBODY else "owner_id = %(owner)s AND"
    with connection.cursor() as cursor:
        cursor.execute(COUNT.format(owner=owner), {"owner": name, "since": since, "until": until})
        return {hour.astimezone(UTC): count for hour, count in cursor.fetchall()}


def _kept(key: str, hours: Iterable[datetime]) -> dict[datetime, int]:
    try:
        stored: dict[Any, Any] = client().hgetall(key)
    except RedisError:
        return {}
    by_stamp = {int(stamp): int(count) for stamp, count in stored.items()}
    return {hour: by_stamp[stamp] for hour in hours if (stamp := int(hour.timestamp())) in by_stamp}


def _keep(key: str, counts: Mapping[datetime, int], oldest: datetime) -> None:
    if not counts:
        return
    try:
        with client().pipeline() as pipeline:
            pipeline.hset(key, mapping={int(hour.timestamp()): count for hour, count in counts.items()})
            pipeline.hdel(key, *(int((oldest - HOUR * back).timestamp()) for back in range(1, HOURS + 1)))
            pipeline.expire(key, KEPT_SECONDS)
            pipeline.execute()
    except RedisError:
        return  # counted again next time
