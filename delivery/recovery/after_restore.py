"""Finds messages that may have been sent in a gap that a restored database forgot, for people to decide on.

In the restored database those messages still wait to be sent. Which ones they are follows from the order in which a
run is sent and from the account's limits: an account cannot have sent more in the gap than its limits allow. Which of
its runs the account served is unknown, since windows opened and closed and people paused and resumed: so each of the
runs may have had all of it. A service that knows the key of a message does not deliver it twice, so its messages are
left alone, unless their run was fired again after the restore: then they have new keys.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction
from django.utils import timezone

from accounts.encryption import UnreadableSecretError
from accounts.models import Account
from accounts.profiles import PROFILES
from audit.record import record
from delivery import conf, lifecycle, transports
from delivery.engine.newness import LEVEL, newness
from delivery.limits.lookup import effective_limits
from delivery.models import Run
from delivery.overdue import overdue_before
from delivery.pacing import LONG_SPANS, Limits, pace_of
from delivery.transports.base import TransportError

ERROR = "may have been sent before the database was restored"
A_MINUTE, AN_HOUR, A_DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """The moment of the restored data, and when the last message may have left."""

    since: datetime
    until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """Targets of one run and account that may have been sent in the gap."""

    account: Account
    run: Run
    targets: list[int]


def most_sent(limits: Limits, length: timedelta) -> int | None:
    """Return the most messages that can have left within a span of this length; None where nothing limits them."""
    bounds = [
        cap * (length // period + more)
        for cap, period, more in (
            (limits.per_minute, A_MINUTE, 1),
            (limits.per_hour, AN_HOUR, 1),
            (limits.per_day, A_DAY, 2),  # a span of an hour may touch two calendar days
            *((getattr(limits, name), hours * AN_HOUR, 1) for name, hours in LONG_SPANS.items()),
        )
        if cap is not None
    ]
    if limits.gap_min:
        bounds.append(math.floor(length.total_seconds() / limits.gap_min) + 1)
    return min(bounds, default=None)


def find(gap: Gap) -> Iterator[Doubt]:
    """Return the targets that may have been sent, by account and run."""
    for account in Account.objects.filter(run_accounts__open=True).distinct().order_by("pk"):
        for action in account.run_accounts.filter(open=True).values_list("run__action", flat=True).distinct():
            most = most_sent(effective_limits(account, action), gap.until - gap.since)
            yield from _of(account, action, gap, most)


# The first targets of each run, in the order of claims.CLAIM. An account that serves on-time work first leaves the
# other targets for later: for such an account every target that was on time in the gap counts as well. A run that was
# fired after the restore, for a moment in the gap, may be the second run for that moment: its targets are planned for
# when it was fired, and count from the first on. Recipients who had opted out by then got nothing, and take no place.
MAY_BE_SENT = """
SELECT run_id, id FROM (
    SELECT t.run_id, t.id, t.not_before,
           row_number() OVER (PARTITION BY t.run_id ORDER BY t.not_before, t.id) AS place
    FROM delivery_runtarget t
    JOIN delivery_run r ON r.id = t.run_id
    JOIN accounts_recipient p ON p.id = t.recipient_id
    WHERE t.account_id = %(account)s AND r.action = %(action)s AND r.status IN ('queued', 'running', 'paused')
      AND (t.status = 'pending' OR (t.status = 'sending' AND t.begun_at IS NULL))
      AND p.opted_out_at IS NULL AND p.blocked_at IS NULL AND p.archived_at IS NULL
      AND p.undeliverable_at IS NULL
      AND COALESCE(r.due_at, r.fired_at) <= %(until)s AND (t.not_before <= %(until)s OR r.fired_at > %(until)s)
      AND (%(keyless)s OR r.fired_at > %(since)s)
) may_be
WHERE %(most)s::bigint IS NULL OR place <= %(most)s
   OR not_before BETWEEN %(on_time)s::timestamptz AND %(until)s
ORDER BY run_id, place
"""


def _of(account: Account, action: str, gap: Gap, most: int | None) -> Iterator[Doubt]:
    arguments: dict[str, Any] = {
        "account": account.pk,
        "action": action,
        "keyless": not _idempotent(account),
        "most": most,
        "since": gap.since,
        "until": gap.until,
        "on_time": overdue_before(conf.drain(), gap.since)
        if PROFILES[account.profile].on_time_first
        else None,
    }
    with connection.cursor() as cursor:
        cursor.execute(MAY_BE_SENT, arguments)
        rows = cursor.fetchall()
    by_run: dict[int, list[int]] = {}
    for run_id, target_id in rows:
        by_run.setdefault(run_id, []).append(target_id)
    for run in Run.objects.filter(pk__in=by_run):
        yield Doubt(account=account, run=run, targets=by_run[run.pk])


def _idempotent(account: Account) -> bool:
    try:
        return transports.make(account.transport, account.credentials, None).capabilities.idempotent
    except (TransportError, UnreadableSecretError):
        return False


# Two statements: a pending target cannot become unconfirmed at once (states.TARGET_MOVES), and no row changes twice
# in one.
HOLD = """
UPDATE delivery_runtarget t SET status = 'sending', fence = COALESCE(t.fence, 0), claimed_at = %(now)s
WHERE t.id = ANY(%(targets)s) AND t.run_id = %(run)s AND t.status = 'pending'
"""
DOUBT = f"""
WITH moved AS (
    UPDATE delivery_runtarget t
    SET status = 'unconfirmed', error = %(error)s, settled_at = %(now)s, claimed_at = NULL, attempts = t.attempts + 1
    WHERE t.id = ANY(%(targets)s) AND t.run_id = %(run)s AND t.status || '' = 'sending' AND t.begun_at IS NULL
    RETURNING t.id, t.account_id, t.recipient_id, t.parts_done, t.attempts
), written AS (
    INSERT INTO activity_attempt (at, owner_id, account_id, run_id, target_id, action, part, attempt,
                                  outcome, provider_id, error, took_ms, new_person)
    SELECT %(until)s, r.owner_id, m.account_id, r.id, m.id, r.action, m.parts_done, m.attempts,
           'unknown', '', %(error)s, 0, {LEVEL}
    FROM moved m JOIN accounts_recipient p ON p.id = m.recipient_id, delivery_run r WHERE r.id = %(run)s
    RETURNING 1
)
UPDATE delivery_run r
SET pending = r.pending - %(held)s, sending = r.sending + %(held)s - n.moved, unconfirmed = r.unconfirmed + n.moved
FROM (SELECT count(*) AS moved FROM moved) n, (SELECT count(*) FROM written) w
WHERE r.id = %(run)s
"""  # noqa: S608 - made of constants


def doubt(found: Doubt, gap: Gap) -> None:
    """Make the targets unconfirmed, and count them for the limits as of the end of the gap."""
    pace = pace_of(effective_limits(found.account, found.run.action))
    arguments: dict[str, Any] = {
        "targets": found.targets,
        "run": found.run.pk,
        "now": timezone.now(),
        "until": gap.until,
        "error": ERROR,
        **newness(found.account, pace, now=gap.until).arguments,
    }
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM delivery_run WHERE id = %s FOR NO KEY UPDATE", [found.run.pk])
        cursor.execute(HOLD, arguments)
        cursor.execute(DOUBT, arguments | {"held": cursor.rowcount})
        record("run.doubted", found.run, after={"account": found.account.pk, "messages": len(found.targets)})
    lifecycle.settle(found.run.pk)
