"""Counts what happens to an account's messages, day by day (SPEC L3).

Messages are counted from the ledger in slices of time, each once: a job moves on from where it stopped, in the
transaction that counts. So no look at an account's health reads the ledger, however long it is. A slice is counted a
few minutes after its end, when its last messages have been written down. What happens rarely (a report, a reply) is
counted at once.
"""

from collections.abc import Iterable
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.db import connection, transaction
from django.db.models import Sum
from django.utils import timezone

from accounts.models import Account
from activity.ledger import LONGEST_SEND
from activity.models import AccountDay
from delivery.health.rules import DAYS, Tally
from delivery.window import window_start_at

SETTLED_AFTER = LONGEST_SEND + timedelta(minutes=1)
SLICE = timedelta(hours=1)
MOST_SLICES = 48  # in one pass; the next goes on from there
NAMES = ("sent", "failed", "returned", "complained", "replies", "opt_outs")

COUNT = """
INSERT INTO activity_accountday (account_id, day, sent, failed)
SELECT n.account_id, (n.at AT TIME ZONE a.zone)::date AS day,
       count(*) FILTER (WHERE n.outcome = 'sent' AND n.part = 0), count(*) FILTER (WHERE n.outcome = 'rejected')
FROM activity_attempt n JOIN accounts_account a ON a.id = n.account_id
WHERE n.at >= %(since)s AND n.at < %(until)s AND n.target_id IS NOT NULL
GROUP BY n.account_id, day ORDER BY n.account_id, day
ON CONFLICT (account_id, day) DO UPDATE
SET sent = activity_accountday.sent + EXCLUDED.sent, failed = activity_accountday.failed + EXCLUDED.failed
"""
# One row, of no model: it belongs to nobody.
BEGIN_WITH = "INSERT INTO activity_ledgercount (counted_until) VALUES (%(first)s) ON CONFLICT (id) DO NOTHING"
STAND = "SELECT counted_until FROM activity_ledgercount FOR UPDATE SKIP LOCKED"
MOVE_ON = "UPDATE activity_ledgercount SET counted_until = %(until)s"

NOTE = """
INSERT INTO activity_accountday (account_id, day, returned, complained, replies, opt_outs)
VALUES (%(account)s, %(day)s, %(returned)s, %(complained)s, %(replies)s, %(opt_outs)s)
ON CONFLICT (account_id, day) DO UPDATE
SET returned = activity_accountday.returned + EXCLUDED.returned,
    complained = activity_accountday.complained + EXCLUDED.complained,
    replies = activity_accountday.replies + EXCLUDED.replies,
    opt_outs = activity_accountday.opt_outs + EXCLUDED.opt_outs
"""


def count_ledger(*, now: datetime) -> int:
    """Count what the ledger got since the last pass; return how many slices were counted."""
    for number in range(MOST_SLICES):
        if not _count_slice(now):
            return number
    return MOST_SLICES


@transaction.atomic
def _count_slice(now: datetime) -> bool:
    """Count one slice; return False where nothing is left, or another process is counting."""
    first = now - timedelta(days=DAYS + 1)
    with connection.cursor() as cursor:
        cursor.execute(BEGIN_WITH, {"first": first})
        cursor.execute(STAND)
        found = cursor.fetchone()
        if found is None:
            return False
        since = max(found[0], first)
        until = min(since + SLICE, now - SETTLED_AFTER)
        if until <= since:
            return False
        cursor.execute(COUNT, {"since": since, "until": until})
        cursor.execute(MOVE_ON, {"until": until})
    return True


def note(account: Account, **counts: int) -> None:
    """Count what happened to an account just now; the last thing of its transaction, so that it holds no lock long."""
    values: dict[str, Any] = dict.fromkeys(("returned", "complained", "replies", "opt_outs"), 0)
    values |= counts | {"account": account.pk, "day": today(account, timezone.now())}
    if any(counts.values()):
        with connection.cursor() as cursor:
            cursor.execute(NOTE, values)


def today(account: Account, now: datetime) -> date:
    return now.astimezone(ZoneInfo(account.zone)).date()


def days_of(account: Account, *, now: datetime) -> dict[date, Tally]:
    """Return the last days of an account, the oldest first; a day without anything is there too."""
    last = today(account, now)
    wanted = [last - timedelta(days=ago) for ago in reversed(range(DAYS))]
    rows = AccountDay.objects.filter(account=account, day__gte=wanted[0], day__lte=last)
    found = {row.day: Tally(**{name: getattr(row, name) for name in NAMES}) for row in rows}
    return {day: found.get(day, Tally()) for day in wanted}


def tallies(accounts: Iterable[Account], *, now: datetime) -> dict[int, Tally]:
    """Return the tally that counts for the health of each account, in one query: since its last fresh start."""
    known = {account.pk: account for account in accounts}
    since = (now - timedelta(days=DAYS)).date()  # a zone ahead of UTC has one day more at most
    rows = AccountDay.objects.filter(account__in=known, day__gt=since).order_by("day")
    found: dict[int, Tally] = {}
    for row in rows:
        account = known[row.account_id]
        start = account.health_from
        if start is not None and row.day < start:
            continue
        tally = Tally(**{name: getattr(row, name) for name in NAMES})
        if start == row.day:
            tally = tally.since(account.health_base or {})
        found[row.account_id] = found.get(row.account_id, Tally()) + tally
    return found


UNCOUNTED = """
SELECT count(*) FILTER (WHERE n.outcome = 'sent' AND n.part = 0), count(*) FILTER (WHERE n.outcome = 'rejected')
FROM activity_attempt n
WHERE n.account_id = %(account)s AND n.target_id IS NOT NULL AND n.at >= %(midnight)s
  AND n.at >= COALESCE((SELECT counted_until FROM activity_ledgercount), %(midnight)s)
"""


def of_today(account: Account, *, now: datetime) -> dict[str, int]:
    """Return the counts of the present day, for a fresh start in its middle.

    Messages that the next passes will count are among them: they are of before the fresh start, too.
    """
    sums = {name: Sum(name, default=0) for name in NAMES}
    rows = AccountDay.objects.filter(account=account, day=today(account, now))
    found = {name: int(value) for name, value in rows.aggregate(**sums).items()}
    with connection.cursor() as cursor:
        cursor.execute(UNCOUNTED, {"account": account.pk, "midnight": window_start_at(account.zone, 0, now)})
        sent, failed = cursor.fetchone()
    return found | {"sent": found["sent"] + sent, "failed": found["failed"] + failed}
