"""The pump: it serves one account for some minutes, then hands over to the next one.

Nothing leaves without a permit of the limiter and a `begun_at` in the database; everything that left is recorded,
whatever happens around it. The work itself is in `shift/`. All shifts of a worker live on one event loop and share
its statements (`loop.py`, `batching.py`).
"""

import threading
import time
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

import structlog
from django.db import connection

from accounts.encryption import UnreadableSecretError
from accounts.models import Account
from delivery import lifecycle
from delivery.engine import next_run, rescue, wakeups
from delivery.engine.database_contact import contact
from delivery.engine.loop import send_loop
from delivery.engine.shift import changes
from delivery.engine.shift.shift import Shift
from delivery.engine.shift.state import LOOK_AGAIN
from delivery.engine.wakeups import LONGEST_NAP, Rest
from delivery.states import WaitReason
from delivery.transports.base import Capabilities, Transport, TransportError

log = structlog.get_logger(__name__)

CROWDED_FOR = 10.0  # seconds after a pump found no place
LEAST, MOST = 2, 16  # threads for the common tasks: an eighth, within these

under_way: dict[int, float] = {}  # the accounts that this process serves, and since when (monotonic)
stopping = threading.Event()  # the worker shuts down: finish what is in flight, take nothing new


def pump(account_id: int) -> None:
    """Serve an account, or come back soon if too many are served here already."""
    if not contact.there():
        wakeups.pass_on(account_id)  # before the lease: whoever holds it keeps others out
        return
    owner = _owner_of(account_id)
    if not places.take(owner):
        wakeups.put_off(account_id)
        return
    try:
        _serve(account_id)
    finally:
        places.leave(owner)


@lru_cache(maxsize=100_000)
def _owner_of(account_id: int) -> int:
    """Return the owner, who decides only about places: an account that changes hands may count for the old one."""
    owner = Account.objects.filter(pk=account_id).values_list("owner", flat=True).first()
    if owner is None:
        raise LookupError(f"There is no account {account_id}.")
    return owner


def _serve(account_id: int) -> None:
    """Run one shift.

    1. Take its lease, or end at once: another pump has it.
    2. Put right what a dead pump left behind.
    3. Send, until the time is over, the next message is far off, or the account or its limits are changed.
    4. Say when to come back and why, and release the lease.
    """
    lease = wakeups.take_lease(account_id)
    if lease is None:
        return
    rest = Rest.after(LOOK_AGAIN, WaitReason.GAP)
    under_way[account_id] = time.monotonic()
    try:
        if apart := next_run.clocks_apart():
            rest = apart
            return
        seen = changes.look_at([account_id])[account_id]
        account = Account.objects.get(pk=account_id)
        transport = _transport(account)
        can = transport.capabilities if transport is not None else Capabilities()
        rescue.reclaim(lease, idempotent=can.idempotent, files_inside=not can.media_handles)
        if transport is None or account.status != Account.Status.ACTIVE:
            rest = Rest(until=None, reason=WaitReason.ACCOUNT_STOPPED)
        else:
            connection.close()  # back to the pool: a thread that waits for its shift holds none
            shift = Shift(account, lease, transport, seen=seen, stopping=stopping, crowded=places.crowded)
            rest = send_loop().run(shift.serve())
            if rest.seconds() > LONGEST_NAP:
                lifecycle.end_full_days(account)
    finally:
        under_way.pop(account_id, None)
        wakeups.end_shift(lease, rest, others_first=places.crowded())
        connection.close()


def oldest_lease() -> float:
    """Return for how many seconds this process has held the oldest of its leases."""
    return max((time.monotonic() - since for since in list(under_way.values())), default=0.0)


def _transport(account: Account) -> Transport | None:
    """Return the account's transport; None if its credentials cannot be used: it is offline until they are fixed."""
    try:
        return send_loop().transport(account.transport, account.credentials, owner=account.owner_id)
    except (TransportError, UnreadableSecretError) as error:
        if account.status == Account.Status.ACTIVE:
            lifecycle.stop_account(account, status=Account.Status.OFFLINE, reason=str(error))
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """An owner who was refused a place: since when, and when last."""

    since: float
    asked: float

    @property
    def still(self) -> bool:
        """Return whether it asked lately: a pump may have found a place with another worker."""
        return time.monotonic() - self.asked < CROWDED_FOR


class Places:
    """The number of accounts that a process serves at once: fewer than it has threads.

    A shift keeps a thread for minutes. If shifts could take all of them, the common tasks would wait behind
    accounts that wait for their turn: nothing would be fired, no window opened and no dead pump noticed. So a pump
    that finds no place ends at once and comes back soon; and while some do, a shift that ends lets them go first.

    Owners share the places (SPEC K7): one owner may use all of them only while nobody else waits. The next free place
    is for the owner who waits and has the fewest, and among these for the one who has waited longest.

    There is no limit until a worker says how many threads it has.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._most: int | None = None
        self._taken = Counter[int]()
        self._waiting: dict[int, Waiting] = {}  # by owner
        self._refused_at = float("-inf")

    def share(self, threads: int) -> None:
        """Set the number of places; the remaining threads are for the common tasks."""
        self._most = max(1, threads - min(MOST, max(LEAST, threads // 8)))

    def take(self, owner: int) -> bool:
        """Take a place for a pump of this owner; return whether there was one."""
        with self._lock:
            if self._most is not None and not self._may_take(owner, self._most):
                if not self.crowded():
                    log.warning("more_busy_accounts_than_threads", threads_for_accounts=self._most)
                now = time.monotonic()
                since = self._waiting[owner].since if owner in self._waiting else now
                self._waiting[owner] = Waiting(since=since, asked=now)
                self._refused_at = now
                return False
            self._waiting.pop(owner, None)
            self._taken[owner] += 1
            return True

    def leave(self, owner: int) -> None:
        with self._lock:
            self._taken[owner] -= 1
            if not self._taken[owner]:
                del self._taken[owner]

    def crowded(self) -> bool:
        """Return whether some pumps wait for a place."""
        return time.monotonic() - self._refused_at < CROWDED_FOR

    def _may_take(self, owner: int, most: int) -> bool:
        free = most - self._taken.total()
        self._waiting = {each: waits for each, waits in self._waiting.items() if waits.still}
        mine = self._rank(owner)
        return free > sum(self._rank(each) < mine for each in self._waiting if each != owner)

    def _rank(self, owner: int) -> tuple[int, float]:
        waits = self._waiting.get(owner)
        return self._taken[owner], waits.since if waits is not None else float("inf")


places = Places()
