"""Reads the workload of accounts: what they have used, what is planned, and what they still have to send.

Everything that a forecast needs from the database, in a few queries for any number of accounts and runs.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from math import ceil
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db import connection
from django.db.models import Count, QuerySet

from accounts.models import Account
from delivery import conf
from delivery.lifecycle import window_of
from delivery.limits import long_spans, lookup, usage, work_hours
from delivery.models import Run, RunAccount
from delivery.pacing import Limits, error_rate
from delivery.planning.rolling import Rolling
from delivery.planning.values import Allowance, Job, Sender, rank_of

MOST_COUNTED = 20_000  # up to this many targets, a run is counted account by account


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """The targets that an account still has to send for a run: at once, and planned for a day of its zone."""

    account_id: int
    run: Run
    targets: int
    planned: Mapping[date, int]

    @property
    def at_once(self) -> int:
        return max(0, self.targets - sum(self.planned.values()))

    def job(self, now: datetime) -> Job:
        return Job(
            targets=self.at_once,
            parts=max(1, len(self.run.parts)),
            action=self.run.action,
            window=window_of(self.run),
            ready_at=self.run.opens_at or now,
            rank=rank_of(self.run.priority, self.run.fired_at),
            errors=errors_of(self.run),
        )


def senders(accounts: Sequence[Account], jobs: Mapping[int, Sequence[Job]], *, now: datetime) -> list[Sender]:
    """Return the accounts with their work and what is left of their limits."""
    actions = {account.pk: {job.action for job in jobs[account.pk]} for account in accounts}
    found = allowances(accounts, actions, {account.pk: () for account in accounts}, now=now)
    return [
        Sender(
            zone=account.zone,
            allowances={action: found[account.pk, action] for action in actions[account.pk]},
            jobs=list(jobs[account.pk]),
            free_at=max(account.held_until or now, now) + work_hours.ramp_loss(account, now=now),
            slow_down=conf.slow_down(account),
            hours=work_hours.hours_of(account),
        )
        for account in accounts
    ]


def allowances(
    accounts: Sequence[Account],
    actions: Mapping[int, Iterable[str]],
    queues: Mapping[int, Sequence[Share]],
    *,
    now: datetime,
) -> dict[tuple[int, str], Allowance]:
    """Return what is left of the limits of each account and action; planned messages of `queues` are reserved."""
    which = [(account, action) for account in accounts for action in sorted(actions[account.pk])]
    rows = lookup.limits_of(accounts)
    limits = {
        (account.pk, action): lookup.merged(account, action, rows.get((account.pk, action))).limits
        for account, action in which
    }
    used = usage.used(which, now=now, most=usage.worth_counting(limits.values()))
    observed = usage.observed(which, now=now)
    long = long_spans.sent(which, limits, now=now)
    found = {}
    for account, action in which:
        key = account.pk, action
        found[key] = Allowance(
            limits=limits[key],
            day_caps=lookup.day_caps(account, action, rows.get(key)),
            day_used=used[key].day,
            reserved=_reserved(account, action, queues[account.pk], now),
            hour_used=used[key].hour,
            hour_since=used[key].hour_since,
            slowest=observed[key].seconds,
            errors=observed[key].errors,
            rolling=_rolling(account, limits[key], long[key], now),
        )
    return found


def _rolling(
    account: Account, limits: Limits, sent: Mapping[str, long_spans.Sent], now: datetime
) -> list[Rolling]:
    """Return the caps of an account over long spans, with what counts of them now."""
    zone, found = ZoneInfo(account.zone), []
    for name, cap in long_spans.long_caps(limits).items():
        past = Counter[int]()
        for at, count in sent[name]:
            past[(at.astimezone(zone).date() - now.astimezone(zone).date()).days] += count
        found.append(Rolling(cap=cap, length=long_spans.long_span(name), sent=sent[name], past=past))
    return found


def _reserved(account: Account, action: str, queue: Sequence[Share], now: datetime) -> dict[int, int]:
    """Return the messages that runs have planned, by the number of the day from today."""
    today, reserved = now.astimezone(ZoneInfo(account.zone)).date(), Counter[int]()
    for share in queue:
        if share.run.action == action:
            for day, targets in share.planned.items():
                reserved[(day - today).days] += targets * len(share.run.parts)
    return dict(reserved)


# Targets that runs still have to send.


def shares_of(accounts: Sequence[Account], *, now: datetime, but: Run | None = None) -> list[Share]:
    """Return the shares of accounts in runs that continue by themselves, except for `but`."""
    rows = RunAccount.objects.filter(run__in=Run.objects.going(), account__in=accounts, open=True)
    if but is not None:
        rows = rows.exclude(run=but)
    return with_plans(left_of(rows), now=now)


LEFT = """
SELECT share.run_id, share.account_id, (
    SELECT count(*) FROM delivery_runtarget t
    WHERE t.account_id = share.account_id AND t.run_id = share.run_id AND t.status IN ('pending', 'sending')
)
FROM delivery_runaccount share WHERE share.run_id = ANY(%(runs)s::bigint[])
"""


def left_of(rows: QuerySet[RunAccount]) -> list[tuple[int, Run, int]]:
    """Return accounts and runs, with the number of targets left of each.

    A run with several accounts is counted, since recipients may be tied to one; a very large run gets even shares.
    """
    dealt = [
        (row, row.dealers) for row in rows.select_related("run").annotate(dealers=Count("run__run_accounts"))
    ]
    several = {row.run_id for row, dealers in dealt if dealers > 1 and _left(row.run) <= MOST_COUNTED}
    counted = _counted(several) if several else {}
    return [
        (
            row.account_id,
            row.run,
            counted[row.run_id, row.account_id] if row.run_id in several else ceil(_left(row.run) / dealers),
        )
        for row, dealers in dealt
    ]


def _counted(run_ids: Iterable[int]) -> dict[tuple[int, int], int]:
    with connection.cursor() as cursor:
        cursor.execute(LEFT, {"runs": list(run_ids)})
        return {(run_id, account_id): count for run_id, account_id, count in cursor.fetchall()}


def _left(run: Run) -> int:
    return run.pending + run.sending


def errors_of(run: Run) -> float | None:
    """Return a run's error rate, once it has made enough attempts to be paused for it; else None."""
    bad = run.failed + run.unconfirmed + run.returned
    arrived = run.sent - run.returned
    if arrived + bad < settings.ERROR_RATE_MIN_ATTEMPTS:
        return None
    return error_rate(arrived, bad)


PLANNED = """
SELECT share.account_id, share.run_id, (t.not_before AT TIME ZONE a.zone)::date AS day, count(*)
FROM unnest(%(accounts)s::bigint[], %(runs)s::bigint[]) AS share(account_id, run_id)
JOIN accounts_account a ON a.id = share.account_id
JOIN delivery_runtarget t ON t.account_id = share.account_id AND t.run_id = share.run_id
WHERE t.status = 'pending' AND t.not_before > %(now)s
GROUP BY share.account_id, share.run_id, day
"""


def with_plans(left: Sequence[tuple[int, Run, int]], *, now: datetime) -> list[Share]:
    """Return shares from accounts, runs and their remaining targets, with the days these are planned for."""
    if not left:
        return []
    arguments: dict[str, Any] = {
        "accounts": [each[0] for each in left],
        "runs": [each[1].pk for each in left],
        "now": now,
    }
    planned: dict[tuple[int, int], dict[date, int]] = {}
    with connection.cursor() as cursor:
        cursor.execute(PLANNED, arguments)
        for account_id, run_id, day, count in cursor.fetchall():
            planned.setdefault((account_id, run_id), {})[day] = count
    return [
        Share(account_id=account_id, run=run, targets=targets, planned=planned.get((account_id, run.pk), {}))
        for account_id, run, targets in left
    ]
