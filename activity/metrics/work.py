"""Current values of runs, targets, accounts and reminders. No statement here reads the ledger or a run's targets."""

from collections.abc import Iterator, Sequence
from typing import Any

from django.conf import settings
from django.db import connection
from prometheus_client.core import GaugeMetricFamily, Metric

from accounts.models import Account
from activity.health.work_checks import Work
from delivery import pacing
from delivery.limits.lookup import limits_for
from delivery.models import RunAccount
from delivery.states import RunStatus

LATE_SECONDS = 60  # a reminder that should have fired this long ago counts as late

# Open runs are found by their accounts' rows, of which the open ones have an index.
RUNS = """
SELECT r.status, r.pause_reason, count(*), sum(r.pending), sum(r.sending), sum(r.unconfirmed), sum(r.returned),
       count(*) FILTER (WHERE r.status = 'running'
                          AND r.failed + r.unconfirmed + r.returned > %s * (r.sent + r.failed + r.unconfirmed))
FROM delivery_run r
WHERE r.id IN (SELECT run_id FROM delivery_runaccount WHERE open)
GROUP BY r.status, r.pause_reason
"""
ACCOUNTS = "SELECT status, count(*) FROM accounts_account WHERE archived_at IS NULL GROUP BY status"
WAITING = """
SELECT waiting_for, count(*) FROM accounts_account
WHERE wake_at IS NOT NULL AND waiting_for <> '' GROUP BY waiting_for
"""
REMINDERS = """
SELECT count(*), COALESCE(extract(epoch FROM now() - min(next_fire_at)), 0)
FROM reminders_reminder
WHERE status = 'scheduled' AND next_fire_at IS NOT NULL AND next_fire_at < now() - make_interval(secs => %s)
"""


def gauges(work: Work) -> Iterator[Metric]:
    """Yield what waits, what is under way, and why accounts wait."""
    yield from _due(work)
    yield from _runs()
    yield _counts("paceline_accounts", "Accounts by their status.", "status", ACCOUNTS)
    yield _counts(
        "paceline_accounts_waiting", "Accounts with work, by what they wait for.", "reason", WAITING
    )
    yield from _reminders()
    yield _allowed()


def _due(work: Work) -> Iterator[Metric]:
    yield GaugeMetricFamily(
        "paceline_accounts_with_work", "Accounts that have something to send.", value=len(work.accounts)
    )
    yield GaugeMetricFamily(
        "paceline_overdue_wake_ups",
        "Accounts whose wake-up is more than a minute late.",
        value=work.overdue,
    )
    yield GaugeMetricFamily(
        "paceline_oldest_wake_up_seconds", "Seconds by which the oldest wake-up is late.", value=work.oldest
    )
    yield GaugeMetricFamily(
        "paceline_unanswered_accounts", "Accounts with work that no worker takes up.", value=work.unanswered
    )
    yield GaugeMetricFamily("paceline_sending_stops", "Stops of sending that are active.", value=work.stops)


def _runs() -> Iterator[Metric]:
    runs = GaugeMetricFamily(
        "paceline_runs", "Runs that are not finished, by status and reason.", labels=["status", "reason"]
    )
    targets = {"pending": 0, "sending": 0, "unconfirmed": 0, "returned": 0, "slowed": 0}
    for status, reason, number, *counts in _rows(RUNS, [settings.ERROR_RATE_SLOW]):
        runs.add_metric([status, reason], number)
        for name, count in zip(targets, counts, strict=True):
            targets[name] += int(count)
    yield runs
    yield GaugeMetricFamily(
        "paceline_targets_pending", "Targets of unfinished runs that wait.", value=targets["pending"]
    )
    yield GaugeMetricFamily(
        "paceline_targets_sending", "Targets that workers have taken to send.", value=targets["sending"]
    )
    yield GaugeMetricFamily(
        "paceline_targets_unconfirmed",
        "Targets of unfinished runs that may or may not have been sent.",
        value=targets["unconfirmed"],
    )
    yield GaugeMetricFamily(
        "paceline_targets_returned",
        "Sent targets of unfinished runs that their services later reported as failed.",
        value=targets["returned"],
    )
    yield GaugeMetricFamily(
        "paceline_runs_slowed", "Running runs that errors slow down.", value=targets["slowed"]
    )


def _reminders() -> Iterator[Metric]:
    [(late, oldest)] = _rows(REMINDERS, [LATE_SECONDS])
    yield GaugeMetricFamily(
        "paceline_late_reminders", "Reminders that should have fired more than a minute ago.", value=late
    )
    yield GaugeMetricFamily(
        "paceline_oldest_reminder_seconds",
        "Seconds by which the most overdue of them is late.",
        value=float(oldest),
    )


def _allowed() -> GaugeMetricFamily:
    """Return how many messages per minute accounts with work may send: limits, gaps and slow-downs together."""
    each = settings.METRICS_PER_ACCOUNT
    family = GaugeMetricFamily(
        "paceline_allowed_per_minute",
        "Messages per minute that accounts with work may send, before pauses between batches.",
        labels=["account", "action"] if each else ["action"],
    )
    asked = _sending()
    limits = limits_for(asked)
    rates: dict[tuple[str, ...], float] = {}
    for account, action in asked:
        gap = pacing.usual_gap(limits[account.pk, action]) * account.slowness
        if gap > 0:  # without any gap there is nothing to compare with
            key: tuple[str, ...] = (str(account.pk), action) if each else (action,)
            rates[key] = rates.get(key, 0.0) + 60 / gap
    for key, rate in sorted(rates.items()):
        family.add_metric(list(key), rate)
    return family


def _sending() -> list[tuple[Account, str]]:
    """Return the accounts that may send, with the actions of their running runs."""
    able = Account.objects.filter(wake_at__isnull=False, status=Account.Status.ACTIVE)
    shares = RunAccount.objects.filter(open=True, run__status=RunStatus.RUNNING, account__in=able)
    accounts = able.in_bulk()
    pairs = shares.values_list("account", "run__action").distinct()
    return [(accounts[account], action) for account, action in pairs if account in accounts]


def _counts(name: str, text: str, label: str, sql: str) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, text, labels=[label])
    for value, number in _rows(sql):
        family.add_metric([value], number)
    return family


def _rows(sql: str, arguments: Sequence[float] = ()) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, arguments)
        return list(cursor.fetchall())
