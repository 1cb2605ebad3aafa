"""Sends each account its pump, by queues, leases and wake-ups, and stores when it wants the next one.

`Account.wake_at` is set while an account has work, so that no lost message of the broker can strand it: a pump
that works pushes it ahead, and a pump that died lets it come due. `tick.py` looks at nothing else.
"""

import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from django.conf import settings
from django.db import connection, transaction
from redis.exceptions import RedisError

from config.celery import app
from config.redis.client import client
from config.redis.publishing import DELAYED, publish
from delivery import conf, live
from delivery.engine import lease
from delivery.engine.clock_reading import database_clock
from delivery.engine.lease import Lease
from delivery.engine.sql import execute, execute_all
from delivery.states import WaitReason

LONGEST_NAP = 10.0  # seconds that a pump waits with a thread of its own; a longer wait arms a wake-up
LONGEST_COUNTDOWN = 60.0  # a longer wait is left to the tick: Redis would redeliver it
PUMP = "delivery.pump"
KNOCK_MS = 600_000  # longer than a shift and its slowest message
OFF = timedelta(seconds=2)  # for which a pump that found no place is put off
OTHERS_FIRST = 8.0  # seconds within which all who were put off have asked again
PASS_ON = 1.0  # seconds that a worker without a database waits before it passes a pump on
UNANSWERED = 3  # pumps in an account's queue; a tick sends one after a lease's life, so that takes a minute


def queue_name(account_id: int) -> str:
    return f"account-{account_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """The time of an account's next message, and the reason to wait. No `until`: nothing is left to send."""

    until: datetime | None
    reason: WaitReason | None = None
    detail: str = ""  # a sentence, where the reason alone does not say enough
    made: float = field(default_factory=time.monotonic)
    made_at: datetime = field(default_factory=lambda: datetime.now(UTC))

    @classmethod
    def soon(cls) -> "Rest":
        """Return a rest that ends at once: there may be more to do."""
        return cls(until=datetime.now(UTC))

    @classmethod
    def after(cls, seconds: float, reason: WaitReason, detail: str = "") -> "Rest":
        return cls(until=datetime.now(UTC) + timedelta(seconds=seconds), reason=reason, detail=detail)

    def no_sooner_than(self, seconds: float) -> "Rest":
        """Return this rest, or one of at least `seconds`."""
        sooner = self.until is not None and self.seconds() < seconds
        return Rest.after(seconds, self.reason or WaitReason.GAP, self.detail) if sooner else self

    @property
    def at(self) -> float:
        """Return `until` on the monotonic clock."""
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


def unanswered(account_ids: Sequence[int]) -> list[int]:
    """Return the accounts whose pumps no worker takes: so many wait that one more would not help."""
    prefix = settings.CELERY_BROKER_TRANSPORT_OPTIONS["global_keyprefix"]
    calls = client().pipeline(transaction=False)
    for account_id in account_ids:
        calls.llen(f"{prefix}{queue_name(account_id)}")
    lengths = calls.execute() if account_ids else []
    return [each for each, length in zip(account_ids, lengths, strict=True) if length >= UNANSWERED]


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
    transaction.on_commit(lambda: publish(lambda: wake(ids), delayed=DELAYED))


def look_again(account_id: int) -> None:
    """Wake an account that waits: its reason may be over, as when its limits were changed."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM accounts_account WHERE id = %s AND wake_at IS NOT NULL", [account_id])
        waits = cursor.fetchone() is not None
    if waits:
        wake_on_commit([account_id])


def tell_workers() -> None:
    """Tell workers that an account was added: they look for its queue now rather than in a few seconds."""
    transaction.on_commit(lambda: publish(lambda: app.control.broadcast("look_for_queues")))


def send_on_commit(task: str, *arguments: object, countdown: float = 0) -> None:
    """Have a task of the common queue done once this transaction is committed, or so many seconds later."""
    transaction.on_commit(
        lambda: publish(lambda: app.send_task(task, arguments, countdown=countdown or None))
    )


def watchdog() -> datetime:
    """Return when to look after an account that is at work; the lease of a pump that died has run out by then.

    By the database's clock: with one of its own that is ahead, a dead pump would leave its account asleep for as long.
    """
    return database_clock.now() + timedelta(seconds=settings.LEASE_SECONDS + 5)


def put_off(account_id: int) -> None:
    """Try again soon, by the wake-up and not by a message: messages would add up."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE accounts_account SET wake_at = %(soon)s WHERE id = %(account)s AND wake_at > %(soon)s",
            {"account": account_id, "soon": datetime.now(UTC) + OFF},
        )


def pass_on(account_id: int) -> None:
    """Leave a pump to another worker: this one is cut off from the database. It may come back here, a little later."""
    time.sleep(PASS_ON)
    publish(lambda: wake([account_id]))


def take_lease(account_id: int, *, ahead: bool = False) -> Lease | None:
    """Return the account's lease; None while another pump has it, and that pump is asked to send the next one.

    `ahead` is for a message that a person waits for: from the asking on no pump begins a new shift, and the one that is
    under way ends soon.
    """
    if ahead:
        client().set(lease.ahead_key(account_id), 1, px=lease.AHEAD_MS)
    elif lease.waited_for(client(), [account_id]):
        knock([account_id])
        return None
    taken = _acquire(account_id)
    if ahead and taken is not None:
        client().delete(lease.ahead_key(account_id))
    if taken is None and not ahead:
        knock([account_id])
        # It may have been released between the two: then nobody else will answer the knock.
        taken = _acquire(account_id)
    return taken


def knock(account_ids: Sequence[int]) -> None:
    """Ask the holders of these accounts' leases to send another pump at the end of their shifts."""
    calls = client().pipeline(transaction=False)
    for account_id in account_ids:
        calls.set(_knock(account_id), 1, px=KNOCK_MS)
    calls.execute()


def _acquire(account_id: int) -> Lease | None:
    marks: dict[str, str] = {}
    taken = lease.acquire(
        client(), account_id, ttl_ms=conf.lease_ms(), next_fence=lambda: _start_shift(account_id, marks)
    )
    return None if taken is None else replace(taken, marks=marks)


def _knock(account_id: int) -> str:
    return f"paceline:{{{account_id}}}:knock"


# From the new fencing number on, no older pump begins a message.
START_SHIFT: Final = """
UPDATE accounts_account
SET fence = fence + 1, wake_at = %(watchdog)s,
    waiting_for = CASE waiting_for WHEN %(nobody)s THEN '' ELSE waiting_for END
WHERE id = %(account)s
RETURNING fence, CASE WHEN marks_fence = fence - 1 THEN limiter_marks END
"""


def _start_shift(account_id: int, marks: dict[str, str]) -> int:
    """Return the next fencing number.

    Put into `marks` what the shift right before this one left. A shift that did not end properly left nothing, and
    then every state of the limiter is rebuilt.
    """
    arguments = {"account": account_id, "watchdog": watchdog(), "nobody": WaitReason.NO_WORKER.value}
    rows = execute(START_SHIFT, arguments)
    if not rows:
        raise LookupError(f"There is no account {account_id}.")
    ((fence, left),) = rows
    marks.update(json.loads(left) if isinstance(left, str) else left or {})
    return int(fence)


# A wake-up that has come meanwhile stays: whoever set it knows more than the shift did when it chose to rest.
# Whether there is work is looked up under the account's lock, which firing takes too: a run that is fired meanwhile
# either is seen here or sets the wake-up after this. The lock has a statement of its own, since a statement that
# waits for a lock still looks at other tables as they were before. A run that only has yet to be settled is work too:
# else one whose settling failed, with the database away, would stay as it is.
LOCK: Final = "SELECT 1 FROM accounts_account WHERE id = %(account)s FOR NO KEY UPDATE"
END_SHIFT: Final = """
UPDATE accounts_account a
SET wake_at = CASE
        WHEN EXISTS (
            SELECT 1 FROM delivery_runtarget t WHERE t.account_id = a.id AND t.status = 'sending'
        ) THEN LEAST(%(watchdog)s, COALESCE(%(until)s, %(watchdog)s))
        WHEN EXISTS (
            SELECT 1 FROM delivery_runaccount share JOIN delivery_run r ON r.id = share.run_id
            WHERE share.account_id = a.id AND share.open AND r.status || '' = 'running' AND a.status = 'active'
              AND EXISTS (SELECT 1 FROM delivery_runtarget t
                          WHERE t.account_id = a.id AND t.run_id = r.id AND t.status = 'pending')
        ) OR EXISTS (
            SELECT 1 FROM delivery_runaccount share JOIN delivery_run r ON r.id = share.run_id
            WHERE share.account_id = a.id AND share.open AND r.status || '' IN ('running', 'paused')
              AND r.sending = 0 AND (r.pending = 0 OR r.canceled_at IS NOT NULL)
        ) THEN CASE WHEN a.wake_at <= %(now)s THEN a.wake_at ELSE COALESCE(%(until)s, %(watchdog)s) END
    END,
    waiting_for = %(reason)s, waiting_until = %(until)s, waiting_detail = %(detail)s,
    limiter_marks = %(marks)s, marks_fence = %(fence)s
WHERE a.id = %(account)s AND a.fence = %(fence)s
RETURNING a.owner_id, a.wake_at
"""


def end_shift(held: Lease, rest: Rest, *, others_first: bool = False) -> None:
    """Store when to come back, release the lease, and send the next pump if it is wanted within a minute.

    A knock (a request for another pump) is also stored in the database: the message sent for it may be lost.
    `others_first` is for a worker in which other accounts wait for a place.
    """
    knocked = _knocked(held.account_id)
    if knocked:
        rest = Rest(until=datetime.now(UTC), reason=rest.reason, detail=rest.detail)
    if others_first:
        rest = rest.no_sooner_than(OTHERS_FIRST)
    arguments: dict[str, Any] = {
        "account": held.account_id,
        "fence": held.fence,
        "now": datetime.now(UTC),
        "until": rest.until,
        "watchdog": watchdog(),
        "reason": rest.reason.value if rest.reason else "",
        "detail": rest.detail,
        "marks": json.dumps(held.marks),
    }
    rows = execute_all([LOCK, END_SHIFT], arguments)
    wanted = knocked or any(wake_at is not None for _, wake_at in rows)
    publish(lambda: _hand_over(held, rest, wanted=wanted, others_first=others_first))
    for owner_id, _ in rows:
        live.account_changed(held.account_id, owner_id)


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
