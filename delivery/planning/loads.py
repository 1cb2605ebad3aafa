"""What an account has planned for its days, and what it may still send on each."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.db import connection

from accounts.models import Account
from delivery.models import Run, RunQuerySet, RunTarget
from delivery.planning import standing
from delivery.planning.course import Allowance
from delivery.planning.overload import Load
from delivery.planning.standing import rank_of
from delivery.states import TargetStatus


def going_runs(account: Account, action: str) -> RunQuerySet:
    going = Run.objects.going().filter(action=action)
    return going.filter(run_accounts__account=account, run_accounts__open=True)


# What is due already is planned for today.
LOADS = """
SELECT t.run_id, GREATEST((t.not_before AT TIME ZONE %(zone)s)::date - %(today)s::date, 0) AS day, count(*)
FROM delivery_runtarget t
WHERE t.account_id = %(account)s AND t.run_id = ANY(%(runs)s::bigint[]) AND t.status = 'pending'
GROUP BY 1, 2 ORDER BY 2
"""


def loads_of(account: Account, runs: Sequence[Run], *, now: datetime) -> list[Load]:
    """What the account has planned for these runs, the most important run first, each by its days."""
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
    """What the account may still send, before anything planned. What is under way is as good as sent."""
    (allowance,) = standing.allowances([account], {account.pk: [action]}, {account.pk: []}, now=now).values()
    under_way = RunTarget.objects.filter(account=account, status=TargetStatus.SENDING, run__action=action)
    parts = sum(len(parts) - done for parts, done in under_way.values_list("run__parts", "parts_done"))
    return replace(allowance, day_used=allowance.day_used + parts)
