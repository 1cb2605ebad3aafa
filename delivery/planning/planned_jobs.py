"""Reads when the targets of open runs may leave, and to whom they go: the jobs of a forecast.

A target that waits for a later moment (a drip, a new person, work that moved off a full day) has a time of its own.
These are read hour by hour, so that a forecast stays cheap however many there are: the last of an hour keeps its own
time, and the others have that of the first.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db import connection

from delivery.engine.claims import KNOWN
from delivery.lifecycle import window_of
from delivery.models import Run, RunAccount
from delivery.planning.values import Job, Planned, Who, rank_of
from delivery.planning.workload import errors_of, left_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """A number of targets of an account in a run that may leave from a moment on; None is now."""

    who: Who
    at: datetime | None
    targets: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Whose:
    """An account in a run, and whether its service has limits of new chats."""

    account_id: int
    run_id: int
    counts_chats: bool


# Of known people who may leave now there can be a million: they are not counted. OFFSET keeps the planner from joining
# the pending targets of all runs there are.
ARRIVALS = f"""
SELECT share.account_id, share.run_id,
       CASE WHEN share.chats AND NOT {KNOWN} THEN 'new_chat' WHEN t.new_person IN (1, 2) THEN 'new' ELSE 'known' END,
       CASE WHEN t.not_before > %(now)s THEN date_trunc('hour', t.not_before) END AS hour,
       min(t.not_before), max(t.not_before) AS last, count(*)
FROM unnest(%(accounts)s::bigint[], %(runs)s::bigint[], %(chats)s::boolean[]) AS share(account_id, run_id, chats)
CROSS JOIN LATERAL (
    SELECT theirs.* FROM delivery_runtarget theirs
    WHERE theirs.account_id = share.account_id AND theirs.run_id = share.run_id AND theirs.status = 'pending'
      AND (theirs.not_before > %(now)s OR share.chats OR theirs.new_person IN (1, 2))
    OFFSET 0
) t
LEFT JOIN accounts_recipient p ON share.chats AND p.id = t.recipient_id
GROUP BY 1, 2, 3, 4 ORDER BY last
"""  # noqa: S608 - made of constants


def arrivals_of(whose: Sequence[Whose], *, now: datetime) -> dict[tuple[int, int], list[Arrival]]:
    """Return the targets with times of their own and the new people, by account and run, in order of their times."""
    found: dict[tuple[int, int], list[Arrival]] = {(each.account_id, each.run_id): [] for each in whose}
    if not whose:
        return found
    arguments: dict[str, Any] = {
        "accounts": [each.account_id for each in whose],
        "runs": [each.run_id for each in whose],
        "chats": [each.counts_chats for each in whose],
        "now": now,
    }
    with connection.cursor() as cursor:
        cursor.execute(ARRIVALS, arguments)
        for account_id, run_id, who, hour, first, last, targets in cursor.fetchall():
            times = [(None, targets)] if hour is None else [(first, targets - 1), (last, 1)]
            found[account_id, run_id] += [
                Arrival(who=Who(who), at=at, targets=count) for at, count in times if count
            ]
    return found


def of_others(
    account_ids: Iterable[int],
    *,
    counts_chats: Iterable[int],
    now: datetime,
    but: Run | None,
) -> dict[int, list[Job]]:
    """Return the jobs of accounts in runs that continue by themselves, except for `but`."""
    jobs: dict[int, list[Job]] = {pk: [] for pk in account_ids}
    rows = RunAccount.objects.filter(run__in=Run.objects.going(), account__in=list(jobs), open=True)
    left = left_of(rows.exclude(run=but) if but is not None else rows)
    chats = set(counts_chats)
    whose = [Whose(account_id=pk, run_id=run.pk, counts_chats=pk in chats) for pk, run, _ in left]
    arrivals = arrivals_of(whose, now=now)
    for account_id, run, targets in left:
        jobs[account_id] += divided(job_of(run, targets, now=now), arrivals[account_id, run.pk])
    return jobs


def job_of(run: Run, targets: int, *, now: datetime) -> Job:
    """Return the job of an open run as if all of its targets were known and might leave now."""
    return Job(
        targets=targets,
        parts=max(1, len(run.parts)),
        action=run.action,
        window=window_of(run),
        ready_at=run.opens_at or now,
        rank=rank_of(run.priority, run.fired_at),
        errors=errors_of(run),
    )


def divided(job: Job, arrivals: Sequence[Arrival]) -> list[Job]:
    """Return a job as one job for each kind of recipient, known people first (SPEC N4)."""
    apart = sum(arrival.targets for arrival in arrivals if arrival.at or arrival.who is not Who.KNOWN)
    due = Arrival(who=Who.KNOWN, at=None, targets=max(0, job.targets - apart))
    told = [due, *(each for each in arrivals if each.at or each.who is not Who.KNOWN)]
    jobs = [_one_kind(job, who, [each for each in told if each.who is who]) for who in Who]
    return [each for each in jobs if each.targets]


def _one_kind(job: Job, who: Who, arrivals: Sequence[Arrival]) -> Job:
    planned = [Planned(at=each.at or job.ready_at, targets=each.targets) for each in arrivals if each.targets]
    whole = replace(job, who=who, targets=sum(each.targets for each in planned))
    if not any(each.at for each in arrivals):
        return whole
    return replace(whole, planned=sorted(planned, key=lambda each: each.at), spacing=(0.0, 0.0))
