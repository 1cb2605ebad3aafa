"""Finds days of accounts that are over their cap, by sent or by planned messages (SPEC S6), and reads the plans."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.db import connection

from accounts.models import Account
from accounts.profiles import PROFILES
from activity.ledger import NEVER_LEFT_SQL
from delivery.limits import long_spans, lookup
from delivery.models import Run, RunQuerySet, RunTarget
from delivery.pacing import span_words
from delivery.planning import workload
from delivery.planning.diary import Load, over
from delivery.planning.values import Allowance, rank_of
from delivery.states import TargetStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Overbooked:
    """A day that is over its cap, or would be by its plan; or a longer `span` that ends on this day."""

    account: Account
    action: str
    day: date
    sent: int
    planned: int
    cap: int
    span: str = "day"


SENT = f"""
SELECT t.account_id, t.action, (t.at AT TIME ZONE a.zone)::date AS day, count(*)
FROM activity_attempt t JOIN accounts_account a ON a.id = t.account_id
WHERE t.at >= %(since)s AND t.account_id = ANY(%(accounts)s::bigint[]) AND t.outcome NOT IN ({NEVER_LEFT_SQL})
GROUP BY 1, 2, 3 ORDER BY 3, 1, 2
"""  # noqa: S608 - made of constants


def sent_over(accounts: Sequence[Account], *, now: datetime, days: int) -> list[Overbooked]:
    """Return days, today included, on which an account sent more than its present cap."""
    by_id, rows = {account.pk: account for account in accounts}, lookup.limits_of(accounts)
    found = []
    with connection.cursor() as cursor:
        cursor.execute(SENT, {"accounts": list(by_id), "since": now - timedelta(days=days)})
        for account_id, action, day, sent in cursor.fetchall():
            account = by_id[account_id]
            cap = lookup.merged(account, action, rows.get((account_id, action))).limits.per_day
            if cap is not None and sent > cap:
                found.append(
                    Overbooked(account=account, action=action, day=day, sent=sent, planned=0, cap=cap)
                )
    own: dict[int, set[str]] = {account.pk: set() for account in accounts}
    for account_id, action in rows:
        own[account_id].add(action)
    for account in accounts:
        for action in PROFILES[account.profile].limits.keys() | own[account.pk]:
            caps = long_spans.long_caps(lookup.merged(account, action, rows.get((account.pk, action))).limits)
            found += _spans_over(account, action, caps, now=now, days=days)
    return found


IN_SPANS = f"""
SELECT (at AT TIME ZONE %(zone)s)::date AS day, max(sent) FROM (
    SELECT t.at, count(*) OVER (ORDER BY t.at RANGE BETWEEN %(length)s::interval PRECEDING AND CURRENT ROW) AS sent
    FROM activity_attempt t
    WHERE t.account_id = %(account)s AND t.action = %(action)s AND t.at >= %(since)s - %(length)s::interval
      AND t.outcome NOT IN ({NEVER_LEFT_SQL})
) each
WHERE at >= %(since)s GROUP BY 1 HAVING max(sent) > %(cap)s ORDER BY 1
"""  # noqa: S608 - made of constants


def _spans_over(
    account: Account, action: str, caps: Mapping[str, int], *, now: datetime, days: int
) -> Iterator[Overbooked]:
    """Return days on which a long span of an account ended with more messages than its present cap."""
    for name, cap in caps.items():
        arguments: dict[str, Any] = {
            "account": account.pk,
            "action": action,
            "zone": account.zone,
            "since": now - timedelta(days=days),
            # Two messages a whole span apart are in no span together.
            "length": long_spans.long_span(name) - timedelta(milliseconds=1),
            "cap": cap,
        }
        with connection.cursor() as cursor:
            cursor.execute(IN_SPANS, arguments)
            for day, sent in cursor.fetchall():
                yield Overbooked(
                    account=account,
                    action=action,
                    day=day,
                    sent=sent,
                    planned=0,
                    cap=cap,
                    span=span_words(name),
                )


def planned_over(accounts: Sequence[Account], *, now: datetime) -> Iterator[Overbooked]:
    """Return days that would be over their cap if everything left as planned."""
    for account, action in at_work(accounts):
        yield from _planned_over(account, action, now)


def at_work(accounts: Sequence[Account]) -> list[tuple[Account, str]]:
    """Return the accounts that have something to send, each with its actions."""
    by_id = {account.pk: account for account in accounts}
    going = Run.objects.going().filter(run_accounts__open=True, run_accounts__account__in=accounts)
    pairs = going.order_by("run_accounts__account", "action").values_list("run_accounts__account", "action")
    return [(by_id[account_id], action) for account_id, action in pairs.distinct() if account_id in by_id]


def _planned_over(account: Account, action: str, now: datetime) -> Iterator[Overbooked]:
    allowance = allowance_of(account, action, now=now)
    loads = loads_of(account, list(going_runs(account, action)), now=now)
    today = now.astimezone(ZoneInfo(account.zone)).date()
    days = Counter[int]()
    for load in loads:
        days[load.day] += load.messages
    for day, planned in over(loads, allowance.room).items():
        yield Overbooked(
            account=account,
            action=action,
            day=today + timedelta(days=day),
            sent=allowance.day_used if day == 0 else 0,
            planned=planned,
            cap=(allowance.room(day, days) or 0) + (allowance.day_used if day == 0 else 0),
        )


# Planned work.


def going_runs(account: Account, action: str) -> RunQuerySet:
    going = Run.objects.going().filter(action=action)
    return going.filter(run_accounts__account=account, run_accounts__open=True)


# Targets that are due already count as planned for today.
LOADS = """
SELECT t.run_id, GREATEST((t.not_before AT TIME ZONE %(zone)s)::date - %(today)s::date, 0) AS day, count(*)
FROM delivery_runtarget t
WHERE t.account_id = %(account)s AND t.run_id = ANY(%(runs)s::bigint[]) AND t.status = 'pending'
GROUP BY 1, 2 ORDER BY 2
"""


def loads_of(account: Account, runs: Sequence[Run], *, now: datetime) -> list[Load]:
    """Return the account's planned work of these runs by day, the most important run first."""
    arguments: dict[str, Any] = {
        "account": account.pk,
        "runs": [run.pk for run in runs],
        "zone": account.zone,
        "today": now.astimezone(ZoneInfo(account.zone)).date(),
    }
    with connection.cursor() as cursor:
        cursor.execute(LOADS, arguments)
        rows = cursor.fetchall()
    by_id = {run.pk: run for run in runs}
    loads = [
        Load(run_id=run_id, day=day, targets=count, parts=max(1, len(by_id[run_id].parts)))
        for run_id, day, count in rows
    ]
    return sorted(loads, key=lambda load: _rank(by_id[load.run_id]))


def _rank(run: Run) -> tuple[object, ...]:
    return *rank_of(run.priority, run.fired_at), run.pk


def allowance_of(account: Account, action: str, *, now: datetime) -> Allowance:
    """Return how much the account may still send, without the planned work. Messages under way count as sent."""
    (allowance,) = workload.allowances([account], {account.pk: [action]}, {account.pk: []}, now=now).values()
    under_way = RunTarget.objects.filter(account=account, status=TargetStatus.SENDING, run__action=action)
    parts = sum(len(parts) - done for parts, done in under_way.values_list("run__parts", "parts_done"))
    return replace(allowance, day_used=allowance.day_used + parts)
