"""The pump: it serves one account for about a minute, then hands over to the next one.

Read it from the top. A shift goes round: launch what is due, refill the agenda when it is empty, land what
came back. Nothing leaves without a permit of the limiter and a `begun_at` in the database; everything that
left is recorded, whatever happens around it.
"""

import heapq
import random
import threading
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import partial
from queue import SimpleQueue
from typing import TypeVar, assert_never

import structlog
from django.conf import settings
from django.db import InterfaceError, OperationalError, connection

from accounts.encryption import UnreadableSecretError
from accounts.models import Account
from delivery import claims, events, knobs, lifecycle, media, pacing, queues, rescue, retry
from delivery.claims import Counts, Landing, Ledgered, NextRun
from delivery.lease import Lease
from delivery.limiter import Away, Granted, LeaseLost, Unit, Wait
from delivery.models import Run
from delivery.outcomes import Rejected, Sent
from delivery.parts import Letter, thaw
from delivery.permits import Permits
from delivery.queues import Rest
from delivery.render import MissingVariableError
from delivery.retry import Effect, Verdict
from delivery.slots import Served, Slot, all_within, landing_of
from delivery.slowdown import SlowDown
from delivery.states import PauseReason, TargetStatus, WaitReason
from delivery.transports.base import Transport, TransportError
from delivery.wire import Landed, Parcel, wire

log = structlog.get_logger(__name__)
T = TypeVar("T")

MOST_CATCHING_UP = 0.5  # seconds by which a message may be late without moving those behind it
LONGEST_NAP = 10.0  # seconds that a pump waits with a thread of its own; a longer wait arms a wake-up
LOOK_AGAIN = 1.0  # seconds until a run of which nothing could be claimed is looked at again
PATIENCE = 60.0  # seconds for which results wait for a database that is away

stopping = threading.Event()  # the worker shuts down: finish what is in the air, take nothing new


def pump(account_id: int) -> None:
    """Serve an account.

    1. Take its lease, or end at once: another pump has it.
    2. Put right what a dead pump left behind.
    3. Send, until the minute is over or the next message is far off.
    4. Say when to come back and why, and release the lease.
    """
    lease = queues.take_lease(account_id)
    if lease is None:
        return
    rest = Rest.after(LOOK_AGAIN, WaitReason.GAP)
    try:
        account = Account.objects.get(pk=account_id)
        transport = _transport(account)
        rescue.reclaim(lease, idempotent=transport is not None and transport.capabilities.idempotent)
        if transport is None or account.status != Account.Status.ACTIVE:
            rest = Rest(until=None, reason=WaitReason.ACCOUNT_STOPPED)
        else:
            rest = Shift(account, lease, transport).serve()
    finally:
        queues.end_shift(lease, rest)
        connection.close()


def _transport(account: Account) -> Transport | None:
    """How the account sends; one whose credentials cannot be used is offline until somebody mends them."""
    try:
        return wire().transport(account.transport, account.credentials)
    except (TransportError, UnreadableSecretError) as error:
        if account.status == Account.Status.ACTIVE:
            lifecycle.stop_account(account, status=Account.Status.OFFLINE, reason=str(error))
        return None


class Shift:
    """One pump's minute with one account."""

    def __init__(self, account: Account, lease: Lease, transport: Transport) -> None:
        self.account = account
        self.lease = lease
        self.transport = transport
        self.slow_down = SlowDown(account, lease)
        self.permits: dict[str, Permits] = {}  # each action has limits of its own
        self.served: dict[int, Served] = {}
        self.agenda: list[Slot] = []  # first messages to targets, by time
        self.following: list[Slot] = []  # next messages to targets in `groups`, by time
        self.groups: set[int] = set()  # targets of which a message left and the last has not landed
        self.air: dict[int, Slot] = {}
        self.landed: SimpleQueue[Landed] = SimpleQueue()
        self.rest: Rest | None = None
        self.leaving = False  # nothing more is due for a while
        self.over = False  # and nothing more may begin
        self.ends = time.monotonic() + settings.PUMP_SECONDS
        self.renew_at = 0.0
        self.rng = random.Random()

    # The round.

    def serve(self) -> Rest:
        """Go round until there is nothing to do for a while, or the shift is over."""
        try:
            while not self._finished():
                self._launch_due()
                if self._wants_more():
                    self._refill()
                self._land(timeout=self._until_next())
                self._keep_lease()
        finally:
            self._clear_the_air()
        return self.rest or Rest.soon()

    def _finished(self) -> bool:
        if not self.over and (stopping.is_set() or time.monotonic() >= self.ends):
            self._wind_down(Rest.soon())
        return (self.leaving or self.over) and not (self.agenda or self.following or self.air)

    def _wind_down(self, rest: Rest) -> None:
        """Begin nothing more; what is in the air still lands."""
        self.over = True
        self.rest = rest
        self._drop_agenda()

    def _clear_the_air(self) -> None:
        """However the shift ends, what left is recorded: nobody else can know what became of it."""
        self.over = True
        while self.air:
            self._land(timeout=1.0)
            self._keep_lease()
        for permits in self.permits.values():
            permits.report()

    def _wants_more(self) -> bool:
        if self.over or self.leaving or (self.rest is not None and not self.rest.due()):
            return False
        # Without pacing the next targets are claimed while the last ones are in the air.
        behind = [slot for slot in self.agenda if slot.at <= time.monotonic()]
        return len(self.agenda) <= (self._concurrency() if len(behind) == len(self.agenda) else 0)

    def _until_next(self) -> float:
        """Seconds until there is something to do, if nothing lands before."""
        if self.over:
            return 1.0
        if self.leaving and not (self.agenda or self.following or self.air):
            return 0.0
        moments = [self.ends, self.renew_at]
        if self.following:
            moments.append(self.following[0].at)
        if self.agenda and len(self.groups) < self._concurrency():
            moments.append(self.agenda[0].at)
        if not (self.agenda or self.leaving):
            moments.append(self.rest.at if self.rest is not None else 0.0)
        return max(0.0, min(moments) - time.monotonic())

    def _concurrency(self) -> int:
        return self.account.group_concurrency or int(settings.GROUP_CONCURRENCY)

    # Refill: a run, permits, targets.

    def _refill(self) -> None:
        self.rest = None
        now = datetime.now(UTC)
        chosen = self._patiently(
            lambda: claims.next_run(self.account.pk, now=now, sendable=knobs.sendable(now))
        )
        if chosen is None:
            self._rest(Rest(until=None, reason=WaitReason.NOTHING_TO_SEND))
        elif chosen.not_before > now:
            self._rest(Rest(until=chosen.not_before, reason=WaitReason.NOT_BEFORE))
        else:
            run = self.served.get(chosen.run_id) or self._patiently(lambda: self._prepare(chosen.run_id))
            if run is not None:
                self._take_permits(run, chosen)

    def _rest(self, rest: Rest) -> None:
        """Wait in place if it is short; else the shift ends once all that has begun is through."""
        self.rest = rest
        self.leaving = rest.until is None or rest.seconds() > LONGEST_NAP

    def _prepare(self, run_id: int) -> Served | None:
        """The run with its media uploaded; None if that failed, and then the shift knows what to wait for."""
        run = Run.objects.get(pk=run_id)
        handles = media.handles(run, self.account, self.transport, keep_alive=self._keep_lease)
        if isinstance(handles, media.NotUploaded):
            self._media_trouble(run, handles)
            return None
        whose = Ledgered(run_id=run.pk, owner_id=run.owner_id, account_id=self.account.pk, action=run.action)
        letter = Letter(action=run.action, subject=run.subject, open_file=media.open_file, handles=handles)
        served = Served(run_id=run.pk, key=run.key, whose=whose, parts=thaw(run.parts), letter=letter)
        self.served[run.pk] = served
        return served

    def _media_trouble(self, run: Run, trouble: media.NotUploaded) -> None:
        verdict = retry.decide(trouble.outcome, attempt=1, idempotent=True, knobs=knobs.retry_knobs())
        if verdict.target is TargetStatus.FAILED:
            self._pause_run(run.pk, trouble.sentence())
            return
        self._affect_account(verdict)
        self._rest(Rest.after(verdict.retry_after or LOOK_AGAIN, WaitReason.SLOWED))

    def _take_permits(self, run: Served, chosen: NextRun) -> None:
        permits = self._permits_for(run.whose.action)
        if never := permits.why_never(len(run.parts)):
            self._pause_run(run.run_id, never)
            return
        held = [*self.air.values(), *self.following, *self.agenda]
        answer = self._patiently(
            lambda: permits.take(
                cost=len(run.parts),
                error_rate=pacing.error_rate(chosen.sent, chosen.failed),
                in_hand={permit: slot.planned_ms for slot in held for permit in slot.permits},
                in_the_air=len(self.air),
            )
        )
        match answer:
            case Granted(units=units):
                self._claim(run, units, permits)
            case Wait(until_ms=until_ms, reason=reason, now_ms=now_ms):
                self._rest(Rest.after((until_ms - now_ms) / 1000, reason))
            case LeaseLost():
                log.warning("lease_lost", account=self.account.pk)
                self._wind_down(Rest.soon())
            case Away(reason=reason):
                log.warning("limiter_away", account=self.account.pk, reason=reason)
                self._wind_down(Rest.after(LOOK_AGAIN, WaitReason.LIMITER_AWAY))
            case _:
                assert_never(answer)

    def _permits_for(self, action: str) -> Permits:
        if action not in self.permits:
            self.permits[action] = self._patiently(lambda: Permits(self.account, self.lease, action))
        return self.permits[action]

    def _claim(self, run: Served, units: tuple[Unit, ...], permits: Permits) -> None:
        fence, most, now = self.lease.fence, len(units), datetime.now(UTC)
        claimed = self._patiently(
            lambda: claims.claim(run.run_id, self.account.pk, fence=fence, most=most, now=now)
        )
        self._forget({target.target_id for target in claimed})
        for unit, target in zip(units, claimed, strict=False):
            left = len(run.parts) - target.parts_done
            permits.give_back(unit.permits[left:])
            slot = Slot(
                at=permits.moment(unit),
                target=target,
                run=run,
                part=target.parts_done,
                permits=list(unit.permits[:left]),
                planned_ms=unit.at_ms,
            )
            heapq.heappush(self.agenda, slot)
        for unit in units[len(claimed) :]:
            permits.give_back(unit.permits)
        if not claimed:
            # Paused or stopped since it was chosen, or another fence: look again, not at once.
            self._rest(Rest.after(LOOK_AGAIN, WaitReason.NOTHING_TO_SEND))

    def _forget(self, targets: set[int]) -> None:
        """Slots of targets that were taken from this shift, by a pause and a resume, and are claimed anew."""
        for slots in (self.agenda, self.following):
            stale = [slot for slot in slots if slot.target_id in targets]
            for slot in stale:
                slots.remove(slot)
                self._permits_for(slot.run.whose.action).give_back(slot.permits)
            heapq.heapify(slots)
        self.groups -= targets

    # Launch: the last look, then off.

    def _launch_due(self) -> None:
        due = self._pop_due()
        if not due:
            return
        now, begun = self._patiently(lambda: self._begin(due))
        refused = [slot for slot in due if slot.target_id not in begun]
        self._send([slot for slot in due if slot.target_id in begun], begun, now)
        if refused:
            # Paused, canceled, closed, opted out or no longer ours: the rest of the agenda is asked for again.
            self._give_back(refused)
            self._drop_agenda()

    def _begin(self, due: list[Slot]) -> tuple[datetime, dict[int, int]]:
        """The moment is read once there is a connection: the window may close while the database is away."""
        connection.ensure_connection()
        now = datetime.now(UTC)
        parts = {slot.target_id: slot.part for slot in due}
        return now, claims.begin(parts, fence=self.lease.fence, now=now, sendable=knobs.sendable(now))

    def _pop_due(self) -> list[Slot]:
        """A group that has begun goes on; a new one begins while there is room."""
        now = time.monotonic()
        self._keep_gaps(now)
        due = []
        while self.following and self.following[0].at <= now:
            due.append(heapq.heappop(self.following))
        while self.agenda and self.agenda[0].at <= now and len(self.groups) < self._concurrency():
            slot = heapq.heappop(self.agenda)
            self.groups.add(slot.target_id)
            due.append(slot)
        return due

    def _keep_gaps(self, now: float) -> None:
        """What a slow gateway or database held up does not bunch: all that is behind it moves on as well."""
        if self.agenda and len(self.groups) < self._concurrency():
            late = now - self.agenda[0].at
            if late > MOST_CATCHING_UP:
                for slot in self.agenda:
                    slot.at += late

    def _send(self, slots: Iterable[Slot], begun: dict[int, int], now: datetime) -> None:
        parcels = []
        for slot in slots:
            slot.attempt, slot.began_at = begun[slot.target_id], now
            self.air[slot.target_id] = slot
            try:
                parcels.append(Parcel(tag=slot.target_id, message=slot.message(), key=slot.key))
            except MissingVariableError as error:
                self.landed.put(Landed(tag=slot.target_id, outcome=Rejected(reason=str(error)), took_ms=0))
        if parcels:
            wire().launch(self.transport, parcels, self.landed)

    # Land: what became of it.

    def _land(self, *, timeout: float) -> None:
        """Wait for results up to `timeout`, then record all there are, run by run."""
        by_run: dict[int, list[tuple[Slot, Landed]]] = {}
        for landed in all_within(self.landed, timeout, in_the_air=len(self.air)):
            slot = self.air[landed.tag]
            by_run.setdefault(slot.run.run_id, []).append((slot, landed))
        for news in by_run.values():
            self._record(news)

    def _record(self, news: list[tuple[Slot, Landed]]) -> None:
        """Into the database first, then whatever follows from it."""
        idempotent, settings_ = self.transport.capabilities.idempotent, knobs.retry_knobs()
        verdicts = [
            retry.decide(landed.outcome, attempt=slot.attempt, idempotent=idempotent, knobs=settings_)
            for slot, landed in news
        ]
        landings = [
            landing_of(slot, landed, verdict) for (slot, landed), verdict in zip(news, verdicts, strict=True)
        ]
        whose, fence, now = news[0][0].run.whose, self.lease.fence, datetime.now(UTC)
        counts = self._patiently(lambda: claims.record(landings, whose, fence=fence, now=now))
        for (slot, landed), landing in zip(news, landings, strict=True):
            self._came_down(slot, landing, clean=isinstance(landed.outcome, Sent))
        for verdict in verdicts:
            self._affect_account(verdict)
        self._affect_run(counts, whose.owner_id)

    def _came_down(self, slot: Slot, landing: Landing, *, clean: bool) -> None:
        """Its next part follows, or its place is free."""
        del self.air[slot.target_id]
        permits = self._permits_for(slot.run.whose.action)
        permits.settle(slot.permits.pop(0))
        if clean:
            self._patiently(self.slow_down.count_clean_send)
        if landing.status is not TargetStatus.SENDING:
            self.groups.discard(slot.target_id)
            permits.give_back(slot.permits)
            if landing.status is TargetStatus.PENDING and not self.over:
                self.leaving, self.rest = False, None  # there is something to send again
        elif self.over:
            self._give_back([slot])
        else:
            gap = self.rng.uniform(settings.PART_GAP_MIN_MS, settings.PART_GAP_MAX_MS) / 1000
            slot.part, slot.at = landing.parts_done, time.monotonic() + gap
            heapq.heappush(self.following, slot)

    def _affect_run(self, counts: Counts, owner_id: int) -> None:
        events.run_changed(counts.run_id, owner_id)
        if (counts.pending == 0 and counts.sending == 0) or counts.canceled:
            self._patiently(lambda: lifecycle.settle(counts.run_id))
        elif knobs.trips(counts.sent, counts.failed) and self._patiently(
            lambda: lifecycle.trip(counts.run_id)
        ):
            self._drop_agenda()

    def _pause_run(self, run_id: int, why: str) -> None:
        """It cannot go on as it is; unless somebody stopped it already."""
        try:
            run = Run.objects.get(pk=run_id)
            self._patiently(lambda: lifecycle.pause(run, reason=PauseReason.ERROR_RATE, detail=why))
        except lifecycle.WrongStateError:
            log.info("already_stopped", run=run_id)

    def _affect_account(self, verdict: Verdict) -> None:
        match verdict.effect:
            case Effect.NONE:
                return
            case Effect.SLOW_DOWN | Effect.HOLD:
                self._hold(verdict.retry_after or LOOK_AGAIN, slower=verdict.effect is Effect.SLOW_DOWN)
            case Effect.OFFLINE:
                self._stop_account(Account.Status.OFFLINE, verdict.error)
            case Effect.FLAG:
                self._stop_account(Account.Status.FLAGGED, verdict.error)
            case _:
                assert_never(verdict.effect)
        self._drop_agenda()

    def _hold(self, seconds: float, *, slower: bool) -> None:
        self._patiently(lambda: self.slow_down.hold(seconds, slower=slower))
        for permits in self.permits.values():
            permits.hold(seconds)

    def _stop_account(self, status: Account.Status, reason: str) -> None:
        self._patiently(lambda: lifecycle.stop_account(self.account, status=status, reason=reason))
        self._wind_down(Rest(until=None, reason=WaitReason.ACCOUNT_STOPPED))

    # What the shift holds.

    def _drop_agenda(self) -> None:
        slots = self.agenda + self.following
        self.agenda, self.following = [], []
        self._give_back(slots)

    def _give_back(self, slots: list[Slot]) -> None:
        """Claimed, not begun: the targets go back to pending, the permits to the limiter."""
        if not slots:
            return
        targets, now = [slot.target_id for slot in slots], datetime.now(UTC)
        runs = self._patiently(lambda: claims.let_go(targets, fence=self.lease.fence, now=now))
        self.groups.difference_update(targets)
        for slot in slots:
            self._permits_for(slot.run.whose.action).give_back(slot.permits)
        for run_id in runs:
            self._patiently(partial(lifecycle.settle, run_id))

    def _keep_lease(self) -> None:
        if time.monotonic() < self.renew_at:
            return
        self.renew_at = time.monotonic() + settings.LEASE_SECONDS / 4
        if not queues.keep_lease(self.lease) and not self.over:
            log.warning("lease_lost", account=self.account.pk)
            self._wind_down(Rest.soon())

    def _patiently(self, work: Callable[[], T]) -> T:
        """Do it, and again while the database is away: results must not be lost over a restart of it."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                return work()
            except (OperationalError, InterfaceError):
                if time.monotonic() >= deadline:
                    raise
                log.warning("database_away", account=self.account.pk)
                queues.keep_lease(self.lease)
                time.sleep(0.5)
            finally:
                connection.close()  # back to the pool: a pump that waits holds no connection
