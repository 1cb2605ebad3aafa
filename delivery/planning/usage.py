"""What accounts have used of their limits by the ledger, and how fast their services were: a query each."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from django.conf import settings
from django.db import connection

from accounts.models import Account
from activity.models import Attempt
from delivery.pacing import error_rate
from delivery.window import window_start_at

Outcome = Attempt.Outcome

LEARNS_FROM = timedelta(days=7)
FEWEST = 20  # messages from which something can be learned
A_BREAK = timedelta(seconds=60)  # a longer silence was a wait, not work
BUSY = 0.5  # of the time that could have been spent sending
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What the ledger teaches: seconds per message where the service set the pace, and the share that failed."""

    seconds: float = 0.0
    errors: float = 0.0


OBSERVED = """
SELECT w.account_id, w.action, latest.at, latest.took_ms, latest.outcome
FROM unnest(%(accounts)s::bigint[], %(actions)s::text[]) AS w(account_id, action)
CROSS JOIN LATERAL (
    SELECT a.at, a.took_ms, a.outcome FROM activity_attempt a
    WHERE a.account_id = w.account_id AND a.action = w.action AND a.at > %(since)s
    ORDER BY a.at DESC LIMIT %(latest)s
) latest
ORDER BY latest.at
"""


def observed(which: Sequence[Which], *, now: datetime) -> dict[Key, Observed]:
    """What the latest messages of each account say."""
    sends: dict[Key, list[tuple[datetime, int]]] = {(account.pk, action): [] for account, action in which}
    outcomes: dict[Key, list[str]] = {key: [] for key in sends}
    for account_id, action, at, took, outcome in _ask(
        OBSERVED, which, since=now - LEARNS_FROM, latest=LATEST
    ):
        sends[account_id, action].append((at, took))
        outcomes[account_id, action].append(outcome)
    in_flight = {
        account.pk: account.group_concurrency or int(settings.GROUP_CONCURRENCY) for account, _ in which
    }
    return {
        key: Observed(
            seconds=seconds_per_message(sent, in_flight=in_flight[key[0]]),
            errors=share_that_failed(outcomes[key]),
        )
        for key, sent in sends.items()
    }


def share_that_failed(outcomes: Sequence[str]) -> float:
    """Of the messages that a service took or refused for good; 0 where these are too few to say."""
    sent, refused = outcomes.count(Outcome.SENT), outcomes.count(Outcome.REJECTED)
    return error_rate(sent, refused) if sent + refused >= FEWEST else 0.0


def seconds_per_message(sends: Sequence[tuple[datetime, int]], *, in_flight: int) -> float:
    """The seconds from one message to the next while the service was the bottleneck; 0 where it was not.

    `sends` are the beginnings of messages, ascending, each with the milliseconds that it took; at most
    `in_flight` were under way at once. Where these were busy most of the time, the service set the pace and will
    do so again. Where they were idle, the limits of that day did, and today's may be others.
    """
    gaps = [
        ((after - before).total_seconds(), took / 1000)
        for (before, took), (after, _) in pairwise(sends)
        if after - before <= A_BREAK
    ]
    if len(gaps) < FEWEST:
        return 0.0
    elapsed, work = sum(gap for gap, _ in gaps), sum(took for _, took in gaps)
    busy = work >= BUSY * elapsed * in_flight
    return elapsed / len(gaps) if busy else 0.0


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
