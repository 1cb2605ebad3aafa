"""The work that beat does every few seconds: open and close windows, pause runs, wake and probe accounts."""

from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime

import structlog
from django.db import connection
from django.db.models import Q
from django.utils import timezone

from config.long_tasks import one_in_slices
from config.redis.client import client
from delivery import lifecycle, live
from delivery.engine import clock_reading, lease, wakeups
from delivery.models import Run
from delivery.sessions import probe
from delivery.states import WaitReason

log = structlog.get_logger(__name__)

MOST_RUNS = 500
MOST_ACCOUNTS = 5000
SLICE, MOST_SLICES = 5_000, 20  # targets of canceled runs that one tick skips
UNTICKED_SECONDS = 10
MOST_UNTICKED = 200


def tick() -> None:
    """Do all that is due now. Two ticks at once do no harm: each move is made under the run's lock, and only once."""
    now = timezone.now()
    for run in Run.objects.opening(now).order_by("opens_at")[:MOST_RUNS]:
        _alone(lifecycle.open_window, run)
    closing = Run.objects.closing(now).order_by("closes_at")[:MOST_RUNS]
    stopped = Run.objects.left_to_stopped_accounts().order_by("pk")[:MOST_RUNS]
    for run in closing.union(stopped, all=True):
        closes = run.closes_at is not None and run.closes_at <= now
        _alone(lifecycle.close_window if closes else lifecycle.wait_for_accounts, run)
    if clock_reading.agree_again():
        wake_all()
    wake_due_accounts()
    probe.ask_due(now)
    take_back_canceled()


def _alone(move: Callable[[Run], Run], run: Run) -> None:
    """Move one run; an error keeps none of the other runs waiting."""
    try:
        move(run)
    except Exception:
        log.exception("window_not_moved", run=run.pk)


def take_back_canceled() -> None:
    """Skip what canceled runs have left, unless a tick of this process is at it: slow slices must not add up."""
    with one_in_slices("canceled runs") as free:
        if free:
            _take_back_some()


def _take_back_some() -> None:
    """Skip a slice of each canceled run in turn, so that a large run delays no other."""
    to_skip = Run.objects.canceling().filter(Q(pending__gt=0) | Q(sending=0))
    runs = deque(to_skip.order_by("canceled_at").values_list("pk", flat=True)[:MOST_SLICES])
    for _ in range(MOST_SLICES):
        if not runs:
            return
        run_id = runs.popleft()
        try:
            if lifecycle.take_back(run_id, most=SLICE):
                runs.append(run_id)
        except Exception:  # an error keeps none of the other runs waiting
            log.exception("not_taken_back", run=run_id)


# The wake-up moves on in the same statement, so that two ticks never take the same account.
DUE = """
UPDATE accounts_account SET wake_at = %(again)s
WHERE id IN (
    SELECT id FROM accounts_account WHERE wake_at <= %(now)s
    ORDER BY wake_at LIMIT %(most)s FOR NO KEY UPDATE SKIP LOCKED
)
RETURNING id
"""


def wake_all() -> None:
    """Let every waiting account look again: clocks that disagreed said how long it waits."""
    now = datetime.now(UTC)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE accounts_account SET wake_at = %s WHERE wake_at > %s", [now, now])
        log.warning("clocks_agree_again", woken=cursor.rowcount)
        cursor.execute(
            "UPDATE accounts_account SET waiting_for = '', waiting_detail = '' WHERE waiting_for = %s",
            [WaitReason.CLOCKS],
        )


def wake_due_accounts() -> None:
    """Send a pump to every account whose wake-up has come; a pump at work there is told to send the next."""
    now = datetime.now(UTC)
    with connection.cursor() as cursor:
        cursor.execute(DUE, {"now": now, "again": wakeups.watchdog(), "most": MOST_ACCOUNTS})
        due = [row[0] for row in cursor.fetchall()]
    if not due:
        return
    held = lease.held(client(), due)
    served = {account_id for account_id, has_pump in zip(due, held, strict=True) if has_pump}
    wakeups.knock(sorted(served))
    unserved = [account_id for account_id in due if account_id not in served]
    alone = set(wakeups.unanswered(unserved))
    wakeups.wake(account_id for account_id in unserved if account_id not in alone)
    _say_that_nobody_comes(sorted(alone))


def _say_that_nobody_comes(account_ids: list[int]) -> None:
    """Write down that no worker takes these accounts up: their share has none, or it is stuck.

    Each tick moves their wake-ups on, so these are never late.
    """
    if not account_ids:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            """
            UPDATE accounts_account SET waiting_for = %(nobody)s, waiting_until = NULL, waiting_detail = ''
            WHERE id IN (SELECT id FROM accounts_account WHERE id = ANY(%(ids)s) ORDER BY id FOR NO KEY UPDATE)
              AND waiting_for <> %(nobody)s
            RETURNING id, owner_id
            """,
            {"nobody": WaitReason.NO_WORKER, "ids": account_ids},
        )
        changed = cursor.fetchall()
    for account_id, owner_id in changed:
        log.warning("no_worker_comes", account=account_id)
        live.account_changed(account_id, owner_id)


# By the database's clock. A wake-up is only that late where no tick comes through.
OVERDUE = """
SELECT id FROM accounts_account
WHERE wake_at < clock_timestamp() - make_interval(secs => %(late)s) AND waiting_for <> %(clocks)s
ORDER BY wake_at LIMIT %(most)s
"""


def wake_unticked_accounts() -> None:
    """Send a pump to accounts whose wake-up is past, for a worker whose own clock is off.

    Such a worker obeys no tick. Where no other worker does, its accounts would sleep on and give a reason that is over;
    their pumps send nothing, and write down which clock is off.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            OVERDUE, {"late": UNTICKED_SECONDS, "clocks": WaitReason.CLOCKS, "most": MOST_UNTICKED}
        )
        late = [row[0] for row in cursor.fetchall()]
    wakeups.wake(late)
