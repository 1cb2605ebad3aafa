"""Account queues, leases and wake-ups: how an account gets its pump, and says when it wants the next one.

`Account.wake_at` is set while an account has work, so that no lost message of the broker can strand it: a pump
that works pushes it ahead, and a pump that died lets it come due. `tick.py` looks at nothing else.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import structlog
from django.conf import settings
from django.db import connection, transaction
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from config.celery import app
from config.redis import client
from delivery import events, knobs, lease
from delivery.lease import Lease
from delivery.states import WaitReason

log = structlog.get_logger(__name__)

LONGEST_COUNTDOWN = 60.0  # a longer wait is left to the tick: Redis would redeliver it
PUMP = "delivery.pump"
KNOCK_MS = 600_000  # longer than a shift and its slowest message
OFF = timedelta(seconds=2)  # for which a pump that found no seat is put off
OTHERS_FIRST = 8.0  # seconds within which all who were put off have asked again
AHEAD_MS = 3000  # for which pumps stand back; whoever is ahead asks again every second


def queue_name(account_id: int) -> str:
    return f"account-{account_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """When an account's next message is due, and why not before. No `until`: nothing is left to send."""

    until: datetime | None
    reason: WaitReason | None = None
    made: float = field(default_factory=time.monotonic)
    made_at: datetime = field(default_factory=lambda: datetime.now(UTC))

    @classmethod
    def soon(cls) -> "Rest":
        """There may be more to do at once."""
        return cls(until=datetime.now(UTC))

    @classmethod
    def after(cls, seconds: float, reason: WaitReason) -> "Rest":
        return cls(until=datetime.now(UTC) + timedelta(seconds=seconds), reason=reason)

    def no_sooner_than(self, seconds: float) -> "Rest":
        """This rest, or a longer one."""
        sooner = self.until is not None and self.seconds() < seconds
        return Rest.after(seconds, self.reason or WaitReason.GAP) if sooner else self

    @property
    def at(self) -> float:
        """The same moment on the monotonic clock."""
        until = self.until or datetime.max.replace(tzinfo=UTC)
        return self.made + (until - self.made_at).total_seconds()

    def seconds(self) -> float:
        return max(0.0, self.at - time.monotonic())

    def due(self) -> bool:
        return time.monotonic() >= self.at


def wake(account_ids: Iterable[int], *, countdown: float = 0) -> None:
    """Send each account a pump. One too many finds the lease taken, and ends."""
    for account_id in account_ids:
        app.send_task(PUMP, (account_id,), queue=queue_name(account_id), countdown=countdown or None)


def wake_on_commit(account_ids: Iterable[int]) -> None:
    """Mark accounts as having work, in this transaction, and wake them once it is committed."""
    ids = sorted(set(account_ids))
    with connection.cursor() as cursor:
        cursor.execute(
            """
            UPDATE accounts_account SET wake_at = %s
            WHERE id IN (SELECT id FROM accounts_account WHERE id = ANY(%s) ORDER BY id FOR NO KEY UPDATE)
            """,
            [datetime.now(UTC), ids],
        )
    transaction.on_commit(lambda: _quietly(lambda: wake(ids)))


def look_again(account_id: int) -> None:
    """What an account waits for may be over, as when its limits were changed; one that waits for nothing sleeps on."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM accounts_account WHERE id = %s AND wake_at IS NOT NULL", [account_id])
        waits = cursor.fetchone() is not None
    if waits:
        wake_on_commit([account_id])


def tell_workers() -> None:
    """An account was added: workers look for its queue now rather than in a few seconds."""
    transaction.on_commit(lambda: _quietly(lambda: app.control.broadcast("look_for_queues")))


def send_on_commit(task: str, *arguments: object, countdown: float = 0) -> None:
    """Have a task of the common queue done once this transaction is committed, or so many seconds later."""
    transaction.on_commit(
        lambda: _quietly(lambda: app.send_task(task, arguments, countdown=countdown or None))
    )


def _quietly(send: Callable[[], object]) -> None:
    """A broker that is away costs a few seconds, not the work: the database knows, and the tick looks."""
    try:
        send()
    except (RedisError, OperationalError):
        log.warning("broker_away")


def watchdog() -> datetime:
    """When to look after an account that is at work; the lease of a pump that died has run out by then."""
    return datetime.now(UTC) + timedelta(seconds=settings.LEASE_SECONDS + 5)


def put_off(account_id: int) -> None:
    """Try again soon. By the wake-up and not by a message: those would add up."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE accounts_account SET wake_at = %(soon)s WHERE id = %(account)s AND wake_at > %(soon)s",
            {"account": account_id, "soon": datetime.now(UTC) + OFF},
        )


def take_lease(account_id: int, *, ahead: bool = False) -> Lease | None:
    """The account's lease; None while another pump has it, and that one is told that somebody knocked.

    `ahead` is for what a person waits for: from the asking on no pump begins a new shift, so that the lease is
    free at the end of the one that is under way.
    """
    if ahead:
        client().set(_ahead(account_id), 1, px=AHEAD_MS)
    elif client().exists(_ahead(account_id)):
        knock([account_id])
        return None
    taken = _acquire(account_id)
    if ahead and taken is not None:
        client().delete(_ahead(account_id))
    if taken is None and not ahead:
        knock([account_id])
        # It may have been released between the two: then nobody else will answer the knock.
        taken = _acquire(account_id)
    return taken


def knock(account_ids: Sequence[int]) -> None:
    """Ask whoever holds the leases of these accounts to send another pump at the end."""
    calls = client().pipeline(transaction=False)
    for account_id in account_ids:
        calls.set(_knock(account_id), 1, px=KNOCK_MS)
    calls.execute()


def _acquire(account_id: int) -> Lease | None:
    return lease.acquire(
        client(), account_id, ttl_ms=knobs.lease_ms(), next_fence=lambda: _start_shift(account_id)
    )


def _ahead(account_id: int) -> str:
    return f"paceline:{{{account_id}}}:ahead"


def _knock(account_id: int) -> str:
    return f"paceline:{{{account_id}}}:knock"


def _start_shift(account_id: int) -> int:
    """The next fencing number; from now on no older pump begins a message."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE accounts_account SET fence = fence + 1, wake_at = %s WHERE id = %s RETURNING fence",
            [watchdog(), account_id],
        )
        row = cursor.fetchone()
    if row is None:
        raise LookupError(f"There is no account {account_id}.")
    return int(row[0])


# A wake-up that has come meanwhile stays: whoever set it knows more than the shift did when it chose to rest.
# Whether there is work is looked up under the account's lock, which firing takes too: a run that is fired meanwhile
# either is seen here or sets the wake-up after this. The lock has a statement of its own, since a statement that
# waits for a lock still looks at other tables as they were before. A run that only has yet to be settled is work too:
# else one whose settling failed, with the database away, would stay as it is.
LOCK = "SELECT 1 FROM accounts_account WHERE id = %(account)s FOR NO KEY UPDATE"
END_SHIFT = """
UPDATE accounts_account a
SET wake_at = CASE
        WHEN EXISTS (
            SELECT 1 FROM delivery_runtarget t WHERE t.account_id = a.id AND t.status = 'sending'
        ) THEN LEAST(%(watchdog)s, COALESCE(%(until)s, %(watchdog)s))
        WHEN EXISTS (
            SELECT 1 FROM delivery_runaccount share JOIN delivery_run r ON r.id = share.run_id
            WHERE share.account_id = a.id AND share.open AND r.status = 'running' AND a.status = 'active'
              AND EXISTS (SELECT 1 FROM delivery_runtarget t
                          WHERE t.account_id = a.id AND t.run_id = r.id AND t.status = 'pending')
        ) OR EXISTS (
            SELECT 1 FROM delivery_runaccount share JOIN delivery_run r ON r.id = share.run_id
            WHERE share.account_id = a.id AND share.open AND r.status IN ('running', 'paused')
              AND r.sending = 0 AND (r.pending = 0 OR r.canceled_at IS NOT NULL)
        ) THEN CASE WHEN a.wake_at <= %(now)s THEN a.wake_at ELSE COALESCE(%(until)s, %(watchdog)s) END
    END,
    waiting_for = %(reason)s, waiting_until = %(until)s
WHERE a.id = %(account)s AND a.fence = %(fence)s
RETURNING a.owner_id, a.wake_at
"""


def end_shift(held: Lease, rest: Rest, *, others_first: bool = False) -> None:
    """Say when to come back, release the lease, and send the next pump if it is wanted within a minute.

    Who knocked is answered in the database as well: the message that is sent for it may be lost. `others_first`
    is for a worker in which other accounts wait for a seat.
    """
    knocked = _knocked(held.account_id)
    if knocked:
        rest = Rest(until=datetime.now(UTC), reason=rest.reason)
    if others_first:
        rest = rest.no_sooner_than(OTHERS_FIRST)
    arguments: dict[str, Any] = {
        "account": held.account_id,
        "fence": held.fence,
        "now": datetime.now(UTC),
        "until": rest.until,
        "watchdog": watchdog(),
        "reason": rest.reason or "",
    }
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(LOCK, arguments)
        cursor.execute(END_SHIFT, arguments)
        row = cursor.fetchone()
    wanted = knocked or (row is not None and row[1] is not None)
    _quietly(lambda: _hand_over(held, rest, wanted=wanted, others_first=others_first))
    if row is not None:
        events.account_changed(held.account_id, row[0])


def _knocked(account_id: int) -> bool:
    try:
        return client().getdel(_knock(account_id)) is not None
    except RedisError:
        return True  # nobody knows: one pump too many does no harm


def _hand_over(held: Lease, rest: Rest, *, wanted: bool, others_first: bool) -> None:
    lease.release(client(), held)
    if _knocked(held.account_id):
        wake([held.account_id], countdown=OTHERS_FIRST if others_first else 0)
    elif wanted and rest.until is not None and rest.seconds() <= LONGEST_COUNTDOWN:
        wake([held.account_id], countdown=rest.seconds())
