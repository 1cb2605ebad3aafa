"""Spreads new people over the days, under the account's limits of new people (SPEC N4).

Known people and groups keep their places. Each new person gets the first day with room, in the window and on the send
days of the run. The engine gives leave person by person: a plan that came out wrong costs a day, and crosses no limit.
"""

from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import accumulate
from typing import Any
from zoneinfo import ZoneInfo

from django.db import connection, transaction

from accounts.models import Account
from activity import ledger
from delivery.engine.newness import LEVEL, NEEDS_RIGHT, Newness, newness
from delivery.lifecycle import window_of
from delivery.limits.lookup import effective_limits
from delivery.limits.work_hours import hours_of
from delivery.models import Run, RunTarget
from delivery.pacing import BUCKETS, WEEK_HOURS, Limits, pace_of
from delivery.planning.diary import Diary, NoRoomError, Slot
from delivery.planning.rolling import Rolling
from delivery.planning.values import Allowance
from delivery.states import TargetStatus
from delivery.window import Window, window_start_at

MOST_AT_ONCE = 50_000  # targets that one statement moves; the engine asks again for the others
BEHIND = timedelta(milliseconds=1)  # those who may leave today follow the known ones
# The limiter frees a place a week and a part of it after the last message. A plan counts whole days, so it uses the
# place on the day after that: on the same day it would come too early, and be moved.
A_WEEK = timedelta(hours=WEEK_HOURS) * (BUCKETS + 1) / BUCKETS

DUE = f"""
SELECT count(*) FROM (
    SELECT 1 FROM delivery_runtarget t JOIN accounts_recipient p ON p.id = t.recipient_id
    WHERE t.account_id = %(account)s AND t.run_id = %(run)s AND t.status = 'pending' AND t.not_before <= %(now)s
      AND ({LEVEL}) = %(level)s LIMIT %(most)s
) due
"""  # noqa: S608 - made of constants

# The due new people of the run, numbered from 1 in their order: those in places `first` to `last` of each slot get the
# time of that slot.
MOVE = f"""
WITH ranked AS MATERIALIZED (
    SELECT t.id, row_number() OVER (ORDER BY t.not_before, t.id) AS place
    FROM delivery_runtarget t JOIN accounts_recipient p ON p.id = t.recipient_id
    WHERE t.account_id = %(account)s AND t.run_id = %(run)s AND t.status = 'pending' AND t.not_before <= %(now)s
      AND ({LEVEL}) = %(level)s
), slots AS (
    SELECT s.at, place FROM unnest(%(firsts)s::bigint[], %(lasts)s::bigint[], %(times)s::timestamptz[])
        AS s(first, last, at) CROSS JOIN LATERAL generate_series(s.first, s.last) AS place
)
UPDATE delivery_runtarget t SET not_before = slots.at, new_person = 1
FROM ranked JOIN slots USING (place) WHERE t.id = ranked.id AND t.status = 'pending'
"""  # noqa: S608 - made of constants


def limit_people(limits: Limits) -> bool:
    """Decide whether an account has a limit of new people."""
    return pace_of(limits).counts_people


@transaction.atomic
def spread(run: Run, account: Account, *, now: datetime, today_is_full: bool = False) -> int:
    """Plan the due new people of a run for days with room; return how many were moved to a later moment.

    The account is locked: two plans that are made at once would not see each other. The run is locked before it, as
    every move of its targets has it. Those whom the week has counted need no place in it, and go first.
    """
    limits = effective_limits(account, run.action)
    who = newness(account, pace_of(limits), now=now)
    if not who.counts_people or who.subscribers:
        return 0
    list(Run.objects.filter(pk=run.pk).select_for_update(no_key=True).values_list("pk"))
    Account.objects.select_for_update(no_key=True).only("pk").get(pk=account.pk)
    within = {1: replace(limits, new_per_week=None), 2: limits}
    return sum(
        _spread(run, account, who, each, level=level, now=now, closed_until=int(today_is_full))
        for level, each in within.items()
    )


def _spread(
    run: Run, account: Account, who: Newness, limits: Limits, *, level: int, now: datetime, closed_until: int
) -> int:
    """Plan the people of one level; a limit that they do not use up is left out of `limits`."""
    arguments: dict[str, Any] = {
        "run": run.pk,
        "now": now,
        "most": MOST_AT_ONCE,
        "level": level,
        **who.arguments,
    }
    with connection.cursor() as cursor:
        cursor.execute(DUE, arguments)
        (due,) = cursor.fetchone()
        try:
            found = (
                slots(window_of(run), account, run.action, limits, due, now=now, closed_until=closed_until)
                if due
                else []
            )
        except NoRoomError:
            found = []
        lasts = list(accumulate(slot.targets for slot in found))
        arguments |= {
            "firsts": [last - slot.targets + 1 for last, slot in zip(lasts, found, strict=True)],
            "lasts": lasts,
            "times": [max(slot.at, now + BEHIND) for slot in found],
        }
        if found:
            cursor.execute(MOVE, arguments)
        return cursor.rowcount if found else 0


def slots(
    window: Window,
    account: Account,
    action: str,
    limits: Limits,
    due: int,
    *,
    now: datetime,
    closed_until: int = 0,
    but: int | None = None,
) -> list[Slot]:
    """Return when `due` new people may get their messages: on each day as many as have room, beside other runs."""
    budget = allowance(account, action, limits, now=now, closed_until=closed_until)
    diary = Diary(zone=account.zone, now=now, room=budget.room, hours=hours_of(account))
    for day, count in _planned(account, action, now, but=but).items():
        diary.enter(day, count)
    return diary.openings(window, parts=1, targets=due, after=now)


def room_today(account: Account, action: str, limits: Limits, *, now: datetime) -> int:
    """Return how many new people may still get a message today, beside those that are planned for it."""
    diary = Diary(zone=account.zone, now=now, room=allowance(account, action, limits, now=now).room)
    for day, count in _planned(account, action, now, but=None).items():
        diary.enter(day, count)
    return diary.room(0) or 0


def allowance(
    account: Account, action: str, limits: Limits, *, now: datetime, closed_until: int = 0
) -> Allowance:
    """Return what is left of the limits of new people."""
    zone, today = ZoneInfo(account.zone), now.astimezone(ZoneInfo(account.zone)).date()
    met = ledger.new_people(
        account.pk, action, since=min(now - A_WEEK, window_start_at(account.zone, 0, now))
    )
    sent = [(at, 1) for at in met if at > now - A_WEEK]
    past = Counter((at.astimezone(zone).date() - today).days for at, _ in sent)
    under_way = RunTarget.objects.filter(
        account=account, status=TargetStatus.SENDING, new_person__in=NEEDS_RIGHT, run__action=action
    ).count()
    week = limits.new_per_week
    rolling = [Rolling(cap=week, length=A_WEEK, sent=sent, past=past)] if week else []
    return Allowance(
        limits=limits,
        day_caps=(limits.new_per_day,) if limits.new_per_day else (),
        day_used=under_way + sum(at.astimezone(zone).date() == today for at in met),
        rolling=rolling,
        closed_until=closed_until,
    )


PLANNED = """
SELECT (t.not_before AT TIME ZONE %(zone)s)::date - %(today)s::date, count(*)
FROM delivery_runaccount share JOIN delivery_run r ON r.id = share.run_id
JOIN delivery_runtarget t ON t.account_id = share.account_id AND t.run_id = r.id
WHERE share.account_id = %(account)s AND share.open AND r.action = %(action)s
  AND t.status = 'pending' AND t.not_before > %(now)s AND t.new_person IN (1, 2)
  AND r.id IS DISTINCT FROM %(but)s
GROUP BY 1
"""


def _planned(account: Account, action: str, now: datetime, *, but: int | None) -> dict[int, int]:
    """Return how many new people the account's runs have planned, by the number of their day from today."""
    arguments: dict[str, Any] = {
        "account": account.pk,
        "action": action,
        "now": now,
        "but": but,
        "zone": account.zone,
        "today": now.astimezone(ZoneInfo(account.zone)).date(),
    }
    with connection.cursor() as cursor:
        cursor.execute(PLANNED, arguments)
        return dict(cursor.fetchall())
