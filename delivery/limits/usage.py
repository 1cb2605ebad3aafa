"""Counts what accounts have used of their limits, and measures how fast their services took messages.

`used_now` is the one source for pages: the limiter knows, in one round trip for all accounts, and the ledger is
counted for those that the limiter has forgotten. Forecasts use `used` and `observed`, which read the ledger alone:
they need the first message of the hour too, which the limiter does not tell.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from django.conf import settings
from django.db import connection

from accounts.models import Account
from accounts.models.account import Action
from accounts.paging import MOST_SHOWN, AtLeast
from activity.ledger import NEVER_LEFT_SQL, new_people
from activity.models import Attempt
from config.redis.client import client
from delivery.limiter import Limiter, Use
from delivery.limits import long_spans
from delivery.limits.lookup import day_of
from delivery.pacing import Limits, error_rate, pace_of, span_words
from delivery.window import window_start_at

Outcome = Attempt.Outcome

LEARNS_FROM = timedelta(days=7)
FEWEST = 20  # messages from which something can be learned
A_BREAK = timedelta(seconds=60)  # a longer silence was a wait, not work
BUSY = 0.5  # of the time that could have been spent sending
LATEST = 100  # messages of an account that say how fast its service is

NOUNS: Mapping[str, str] = {
    Action.MESSAGE: "Messages",
    Action.EMAIL: "E-mails",
    Action.CONNECTION_REQUEST: "Invitations",
    Action.INMAIL: "InMails",
}

Which = tuple[Account, str]  # an account and an action
Key = tuple[int, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """Messages of today, in the account's zone, of the last minute and of the last hour.

    `hour_since` is the time of the first message of the hour, where the ledger was counted. `long` are those of
    the long spans that have a cap, by the name of the cap.
    """

    day: int = 0
    hour: int = 0
    minute: int = 0
    hour_since: datetime | None = None
    long: Mapping[str, int] = field(default_factory=dict)
    new_day: int = 0  # new people, where they have a limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauge:
    """One limit and how much of it is used; `limit` is None where none is set."""

    label: str
    used: int
    limit: int | None

    @property
    def share(self) -> float:
        return self.used / self.limit if self.limit else 0.0


def day_gauge(action: str, used: Used, limits: Limits) -> Gauge:
    return Gauge(label=f"{NOUNS[action]} today", used=used.day, limit=limits.per_day)


def hour_gauge(action: str, used: Used, limits: Limits) -> Gauge:
    return Gauge(label=f"{NOUNS[action]} this hour", used=used.hour, limit=limits.per_hour)


def minute_gauge(action: str, used: Used, limits: Limits) -> Gauge:
    return Gauge(label=f"{NOUNS[action]} this minute", used=used.minute, limit=limits.per_minute)


def long_gauges(action: str, used: Used, limits: Limits) -> list[Gauge]:
    """Return the gauges of the long spans that have a limit, and of the day's new people where they have one."""
    people = [Gauge(label="New people today", used=used.new_day, limit=limits.new_per_day)]
    return (people if limits.new_per_day else []) + [
        Gauge(label=f"{NOUNS[action]} in {span_words(name)}", used=used.long.get(name, 0), limit=cap)
        for name, cap in long_spans.long_caps(limits).items()
    ]


def worth_counting(limits: Iterable[Limits]) -> int:
    """Return how many messages of a day are counted: as many as any limit allows, and as many as a page shows."""
    return max(MOST_SHOWN, *(each.per_day or 0 for each in limits), 0)


def used_now(
    which: Sequence[Which], limits: Mapping[Key, Limits], *, now: datetime, most: int | None = None
) -> dict[Key, Used]:
    """Return what each account has used of the limits of each action: one round trip and at most one query.

    Of an account that the limiter has forgotten, at most `most` messages of each span are counted.
    """
    minute_ms = int(settings.MINUTE_SECONDS * 1000)
    limiter = Limiter(client(), minute_ms=minute_ms, hour_ms=60 * minute_ms)
    asked = [
        (account.pk, action, pace_of(limits[account.pk, action]), day_of(account, now))
        for account, action in which
    ]
    answers = limiter.peek_all(asked) if asked else []
    known = {
        (account.pk, action): _told(answer, limits[account.pk, action])
        for (account, action), answer in zip(which, answers, strict=True)
        if isinstance(answer, Use)
    }
    forgotten = [(account, action) for account, action in which if (account.pk, action) not in known]
    if not forgotten:
        return known
    people = _new_people(forgotten, limits, now=now)
    counted, sent = used(forgotten, now=now, most=most), long_spans.sent(forgotten, limits, now=now)
    return known | {
        key: replace(
            each,
            long={name: sum(count for _, count in rows) for name, rows in sent[key].items()},
            new_day=people.get(key, 0),
        )
        for key, each in counted.items()
    }


def _new_people(which: Sequence[Which], limits: Mapping[Key, Limits], *, now: datetime) -> dict[Key, int]:
    """Count in the ledger the new people of today, of the accounts that have a limit for them."""
    return {
        (account.pk, action): len(new_people(account.pk, action, since=window_start_at(account.zone, 0, now)))
        for account, action in which
        if limits[account.pk, action].new_per_day
    }


def _told(use: Use, limits: Limits) -> Used:
    """Return what has left by the limiter's answer, never above the limit of an hour or a minute.

    The limiter also counts permits for the next seconds, and rights to write to new people with them: they can be
    returned, and are no use yet. After a rebuild it
    counts messages that may still be under way at the latest time at which they can arrive, beyond the span too.
    """
    day, hour, minute = (max(0, (counted or 0) - use.planned) for counted in (use.day, use.hour, use.minute))
    return Used(
        day=day,
        hour=min(hour, limits.per_hour or hour),
        minute=min(minute, limits.per_minute or minute),
        long={
            name: min(max(0, counted - use.planned), getattr(limits, name) or 0)
            for name, counted in use.long.items()
        },
        new_day=min(max(0, use.new_day - use.rights), limits.new_per_day or 0),
    )


# In the order of the index `attempt_limits`: else all messages of the span are found first.
_SINCE = f"""
(SELECT count(*), min(found.at) FROM (
    SELECT a.at FROM activity_attempt a
    WHERE a.account_id = w.account_id AND a.action = w.action AND a.at {{since}}
      AND a.outcome NOT IN ({NEVER_LEFT_SQL})
    ORDER BY a.at LIMIT %(most)s
) found)
"""  # noqa: S608 - made of constants
USED = f"""
SELECT w.account_id, w.action, day.used, hour.used, hour.first, minute.used
FROM unnest(%(accounts)s::bigint[], %(actions)s::text[], %(days)s::timestamptz[]) AS w(account_id, action, day_start)
CROSS JOIN LATERAL {_SINCE.format(since=">= w.day_start")} day(used, first)
CROSS JOIN LATERAL {_SINCE.format(since="> %(hour)s")} hour(used, first)
CROSS JOIN LATERAL {_SINCE.format(since="> %(minute)s")} minute(used, first)
"""  # noqa: S608 - made of constants


def used(which: Sequence[Which], *, now: datetime, most: int | None = None) -> dict[Key, Used]:
    """Count in the ledger what each account has sent of each action, at most `most` messages of each span.

    Where there are more, the number says that it is not all.
    """
    minute = timedelta(seconds=settings.MINUTE_SECONDS)
    rows = _ask(
        USED,
        which,
        days=[window_start_at(account.zone, 0, now) for account, _ in which],
        hour=now - 60 * minute,
        minute=now - minute,
        most=None if most is None else most + 1,
    )

    def shown(number: int) -> int:
        return number if most is None or number <= most else AtLeast(most)

    return {
        (row[0], row[1]): Used(day=shown(row[2]), hour=shown(row[3]), hour_since=row[4], minute=shown(row[5]))
        for row in rows
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """The seconds per message where the service set the pace, and the share that failed, by the ledger."""

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
    """Measure the latest messages of each account."""
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
    """Return the failed share of the messages that a service took or refused for good; 0 where they are too few."""
    sent, refused = outcomes.count(Outcome.SENT), outcomes.count(Outcome.REJECTED)
    return error_rate(sent, refused) if sent + refused >= FEWEST else 0.0


def seconds_per_message(sends: Sequence[tuple[datetime, int]], *, in_flight: int) -> float:
    """Return the seconds from one message to the next while the service was the bottleneck; 0 where it was not.

    `sends` are the times at which messages began, ascending, each with the milliseconds that the message took; at most
    `in_flight` messages were under way at once. Where that many were under way most of the time, the service set the
    pace and will do so again. Otherwise the limits of that day set the pace, and today's limits may be others.
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
