"""What beat does every few seconds: windows open and close, accounts wake up. One indexed query each."""

from collections.abc import Callable
from datetime import UTC, datetime

import structlog
from django.db import connection
from django.utils import timezone

from config.redis import client
from delivery import lifecycle, queues
from delivery.lease import lease_key
from delivery.models import Run

log = structlog.get_logger(__name__)

MOST_RUNS = 500
MOST_ACCOUNTS = 5000


def tick() -> None:
    """All that is due now. Two at once do no harm: each move is made under the run's lock, and only once."""
    now = timezone.now()
    for run in Run.objects.opening(now).order_by("opens_at")[:MOST_RUNS]:
        _alone(lifecycle.open_window, run)
    for run in Run.objects.closing(now).order_by("closes_at")[:MOST_RUNS]:
        _alone(lifecycle.close_window, run)
    wake_due_accounts()


def _alone(move: Callable[[Run], Run], run: Run) -> None:
    """One run that cannot be moved keeps none of the others waiting."""
    try:
        move(run)
    except Exception:
        log.exception("window_not_moved", run=run.pk)


# The wake-up moves on in the same statement, so that two ticks never take the same account.
DUE = """
UPDATE accounts_account SET wake_at = %(again)s
WHERE id IN (
    SELECT id FROM accounts_account WHERE wake_at <= %(now)s
    ORDER BY wake_at LIMIT %(most)s FOR NO KEY UPDATE SKIP LOCKED
)
RETURNING id
"""


def wake_due_accounts() -> None:
    """Send a pump to every account whose wake-up has come; one that is at work there is told to send the next."""
    now = datetime.now(UTC)
    with connection.cursor() as cursor:
        cursor.execute(DUE, {"now": now, "again": queues.watchdog(), "most": MOST_ACCOUNTS})
        due = [row[0] for row in cursor.fetchall()]
    if not due:
        return
    leases = client().mget([lease_key(account_id) for account_id in due])
    served = {account_id for account_id, lease in zip(due, leases, strict=True) if lease is not None}
    queues.knock(sorted(served))
    queues.wake(account_id for account_id in due if account_id not in served)
