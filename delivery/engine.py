"""The pump: it serves one account for about a minute, then hands over to the next one.

Read it from the top. A shift goes round: launch what is due, refill the agenda when it is empty, land what
came back. Nothing leaves without a permit of the limiter and a `begun_at` in the database; everything that
left is recorded, whatever happens around it. All shifts of a worker live on one event loop and share its
statements (`wire.py`, `clerk.py`).
"""

import asyncio
import random
import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import assert_never

import structlog
from django.conf import settings
from django.db import connection

from accounts.encryption import UnreadableSecretError
from accounts.models import Account
from accounts.unsubscribe import links_from
from delivery import claims, events, knobs, lifecycle, media, pacing, queues, rescue, retry, turns
from delivery.agenda import Agenda
from delivery.claims import Claimed
from delivery.inbound import first_contacts
from delivery.lease import Lease
from delivery.limiter import Away, Granted, LeaseLost, Unit, Wait
from delivery.models import Run
from delivery.outcomes import Rejected, Sent, TryAgain
from delivery.parts import Letter, thaw
from delivery.permits import Permits
from delivery.planning import drip, replan
from delivery.queues import Rest
from delivery.records import Begun, Counts, Landing, Ledgered
from delivery.render import MissingVariableError
from delivery.retry import Effect, Verdict
from delivery.seats import seats
from delivery.slots import Served, Slot, landing_of
from delivery.slowdown import SlowDown
from delivery.states import PauseReason, TargetStatus, WaitReason
from delivery.transports.base import Capabilities, Transport, TransportError
from delivery.turns import Turn
from delivery.wire import Landed, Parcel, wire

log = structlog.get_logger(__name__)

LONGEST_NAP = 10.0  # seconds that a pump waits with a thread of its own; a longer wait arms a wake-up
LOOK_AGAIN = 1.0  # seconds until a run of which nothing could be claimed is looked at again
LOOK_AROUND = 2.0  # seconds until a shift that waits looks whether its worker stops

stopping = threading.Event()  # the worker shuts down: finish what is in the air, take nothing new


def pump(account_id: int) -> None:
    """Serve an account, or come back soon if too many are served here already."""
    if not seats.take():
        queues.put_off(account_id)
        return
    try:
        _serve(account_id)
    finally:
        seats.leave()


def _serve(account_id: int) -> None:
    """One shift.

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
        can = transport.capabilities if transport is not None else Capabilities()
        rescue.reclaim(lease, idempotent=can.idempotent, files_inside=not can.media_handles)
        if transport is None or account.status != Account.Status.ACTIVE:
            rest = Rest(until=None, reason=WaitReason.ACCOUNT_STOPPED)
        else:
            connection.close()  # back to the pool: a thread that waits for its shift holds none
            rest = wire().run(Shift(account, lease, transport).serve())
            if rest.seconds() > LONGEST_NAP:
                lifecycle.end_full_days(account)
    finally:
        queues.end_shift(lease, rest, others_first=seats.crowded())
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
        self.agenda = Agenda(concurrency=account.group_concurrency or int(settings.GROUP_CONCURRENCY))
        self.air: dict[int, Slot] = {}
        self.landed: list[Landed] = []
        self.bell = asyncio.Event()  # something landed, or the lease is lost
        self.refilling: asyncio.Task[None] | None = None
        self.rest: Rest | None = None
        self.leaving = False  # nothing more is due for a while
        self.over = False  # and nothing more may begin
        self.again = False  # a target wants another attempt
        self.ends = time.monotonic() + settings.PUMP_SECONDS
        self.lost = False  # another pump has the account
        self.rng = random.Random()
        self.wire = wire()
        self.clerk = self.wire.clerk

    # The round.

    async def serve(self) -> Rest:
        """Go round until there is nothing to do for a while, or the shift is over."""
        with self.wire.keeper.keeping(self.lease, lost=self._lose_lease):
            try:
                while not await self._finished():
                    await self._launch_due()
                    if self._wants_more():
                        self.refilling = asyncio.create_task(self._refill())
                        self.refilling.add_done_callback(lambda _: self.bell.set())
                    await self._land(within=self._until_next())
            finally:
                await self._clear_the_air()
        return self.rest or Rest.soon()

    async def _finished(self) -> bool:
        if not self.over and (self.lost or stopping.is_set() or time.monotonic() >= self.ends):
            await self._wind_down(Rest.soon())
        if self.refilling is not None:
            if not self.refilling.done():
                return False
            self.refilling.result()
            self.refilling = None
        return (self.leaving or self.over) and not (self.agenda or self.air)

    def _lose_lease(self) -> None:
        self.lost = True
        self.bell.set()

    async def _wind_down(self, rest: Rest) -> None:
        """Begin nothing more; what is in the air still lands."""
        self.over = True
        self.rest = rest
        await self._drop_agenda()

    async def _clear_the_air(self) -> None:
        """However the shift ends, what left is recorded: nobody else can know what became of it."""
        self.over = True
        if self.refilling is not None:
            await asyncio.wait([self.refilling])
        while self.air:
            try:
                await self._land(within=LOOK_AROUND)
            except Exception:  # the others may still be recorded
                log.exception("not_recorded", account=self.account.pk)
        await self._drop_agenda()
        for permits in self.permits.values():
            await self.clerk.ask(permits.report)
        await self.transport.close()

    def _wants_more(self) -> bool:
        if self.refilling or self.over or self.leaving or (self.rest is not None and not self.rest.due()):
            return False
        return self.agenda.runs_low(time.monotonic())

    def _until_next(self) -> float:
        """Seconds until there is something to do, if nothing lands before."""
        if self.over:
            return LOOK_AROUND
        if self.leaving and not (self.agenda or self.air or self.refilling):
            return 0.0
        moments = [self.ends, time.monotonic() + LOOK_AROUND]
        if (next_at := self.agenda.next_at()) is not None:
            moments.append(next_at)
        if not (self.agenda.has_firsts() or self.leaving or self.refilling):
            moments.append(self.rest.at if self.rest is not None else 0.0)
        return max(0.0, min(moments) - time.monotonic())

    # Refill: a run, permits, targets.

    async def _refill(self) -> None:
        """Fetch more. What was found is out of date if all was dropped meanwhile, or a target came back."""
        dropped, self.rest, self.again = self.agenda.dropped, None, False
        await self._find_work()
        if self.agenda.dropped != dropped:
            await self._drop_agenda()
        if (self.agenda.dropped != dropped or self.again) and not self.over:
            self.leaving, self.rest = False, None

    async def _find_work(self) -> None:
        busy = bool(self.air or self.agenda)
        answer = await self.clerk.ask(
            partial(turns.next_turn, self.account, now=datetime.now(UTC), busy=busy)
        )
        if isinstance(answer, Rest):
            self._rest(answer)
            return
        run = self.served.get(answer.run.run_id) or await self._prepare(answer.run.run_id)
        if run is not None and not await self._spread(run):
            await self._take_permits(run, answer)

    async def _spread(self, run: Served) -> bool:
        """Whether targets of a drip that an outage made overdue were planned anew, so that they stay apart."""
        if run.drip is None:
            return False
        return bool(
            await self.clerk.ask(partial(drip.catch_up, run.drip, self.account, now=datetime.now(UTC)))
        )

    def _rest(self, rest: Rest) -> None:
        """Wait in place if it is short; else the shift ends once all that has begun is through."""
        if self.over:
            return  # why it ended stays
        self.rest = rest
        self.leaving = rest.until is None or rest.seconds() > LONGEST_NAP

    async def _prepare(self, run_id: int) -> Served | None:
        """The run with its media uploaded; None if that failed, and then the shift knows what to wait for."""
        run = await self.clerk.ask(partial(Run.objects.get, pk=run_id))
        handles = await media.handles(run, self.account, self.transport)
        if isinstance(handles, media.NotUploaded):
            await self._media_trouble(run, handles)
            return None
        whose = Ledgered(run_id=run.pk, owner_id=run.owner_id, account_id=self.account.pk, action=run.action)
        letter = Letter(
            action=run.action,
            subject=run.subject,
            open_file=media.open_file,
            handles=handles,
            unsubscribe_url=links_from(self.account),
        )
        served = Served(
            run_id=run.pk,
            key=run.key,
            whose=whose,
            parts=thaw(run.parts),
            letter=letter,
            drip=run if run.drip else None,
        )
        if run.action not in self.permits:
            made = await self.clerk.ask(partial(Permits, self.account, self.lease, run.action))
            self.permits[run.action] = made
        self.served[run.pk] = served
        return served

    async def _media_trouble(self, run: Run, trouble: media.NotUploaded) -> None:
        verdict = retry.decide(
            trouble.outcome, attempt=trouble.attempt, idempotent=True, knobs=knobs.retry_knobs()
        )
        if verdict.target is not TargetStatus.PENDING:
            await self._pause_run(run.pk, trouble.sentence())
            return
        await self._affect_account(verdict)
        if not self.over:
            self._rest(Rest.after(verdict.retry_after or LOOK_AGAIN, WaitReason.SLOWED))

    async def _take_permits(self, run: Served, turn: Turn) -> None:
        permits = self._permits_of(run)
        if never := permits.why_never(len(run.parts)):
            await self._pause_run(run.run_id, never)
            return
        held = [*self.air.values(), *self.agenda.slots()]
        answer = await self.clerk.ask(
            partial(
                permits.take,
                cost=len(run.parts),
                error_rate=_error_rate(turn),
                in_hand={permit: slot.planned_ms for slot in held for permit in slot.permits},
                in_the_air=len(self.air),
            )
        )
        match answer:
            case Granted(units=units):
                await self._claim(run, units, permits, turn)
            case Wait(until_ms=until_ms, reason=reason, now_ms=now_ms):
                if reason is WaitReason.PER_DAY:
                    await self._plan_anew(run, min(now_ms, until_ms - 1))
                self._rest(Rest.after((until_ms - now_ms) / 1000, reason))
            case LeaseLost():
                log.warning("lease_lost", account=self.account.pk)
                await self._wind_down(Rest.soon())
            case Away(reason=reason):
                log.warning("limiter_away", account=self.account.pk, reason=reason)
                await self._wind_down(Rest.after(LOOK_AGAIN, WaitReason.LIMITER_AWAY))
            case _:
                assert_never(answer)

    async def _plan_anew(self, run: Served, now_ms: int) -> None:
        """The day is full: what it cannot take any more is moved to days that can, and the runs say so.

        The day is that of the answer, and not of the clock by now: at midnight the one that begins is not full.
        """
        now, action = datetime.fromtimestamp(now_ms / 1000, UTC), run.whose.action
        while await self.clerk.ask(partial(replan.full_day, self.account, action, now=now)):
            log.info("day_full", account=self.account.pk, action=action)

    def _permits_of(self, run: Served) -> Permits:
        return self.permits[run.whose.action]

    async def _claim(self, run: Served, units: tuple[Unit, ...], permits: Permits, turn: Turn) -> None:
        claimed = await self.clerk.ask_about(
            run.run_id,
            partial(
                claims.claim,
                run.run_id,
                self.account.pk,
                fence=self.lease.fence,
                most=min(len(units), turn.most or len(units)),
                now=datetime.now(UTC),
                planned=turn.planned,
            ),
        )
        for stale in self.agenda.forget({target.target_id for target in claimed}):
            permits.give_back(stale.permits)
        gap = permits.shortest_gap(len(run.parts), _error_rate(turn))
        # A target whose intent is being written was released and is claimed anew: it goes on as it was.
        going = {slot.target_id for slot in self.agenda.beginning}
        for unit, target in zip(units, claimed, strict=False):
            if target.target_id in going:
                permits.give_back(unit.permits)
            else:
                self.agenda.add(_slot(run, unit, target, permits, gap))
        for unit in units[len(claimed) :]:
            permits.give_back(unit.permits)
        if not claimed:
            # Paused or stopped since it was chosen, or another fence: look again, not at once.
            self._rest(Rest.after(LOOK_AGAIN, WaitReason.NOTHING_TO_SEND))

    # Launch: the last look, then off.

    async def _launch_due(self) -> None:
        due = self.agenda.pop_due(time.monotonic())
        if not due:
            return
        begun = await self.clerk.begin([slot.intent(fence=self.lease.fence) for slot in due])
        self._send([slot for slot in due if slot.target_id in begun], begun)
        for slot in self.agenda.began(time.monotonic()):
            self._permits_of(slot.run).left(slot.gap)
        refused = [slot for slot in due if slot.target_id not in begun]
        if refused:
            # Paused, canceled, closed, opted out or no longer ours: the rest of the agenda is asked for again.
            await self._give_back(refused)
            await self._drop_agenda()

    def _send(self, slots: Iterable[Slot], begun: Mapping[int, Begun]) -> None:
        parcels = []
        for slot in slots:
            slot.attempt, slot.began_at = begun[slot.target_id].attempt, begun[slot.target_id].at
            self.air[slot.target_id] = slot
            parcel = _parcel(slot)
            if isinstance(parcel, Parcel):
                parcels.append(parcel)
            else:
                self._hear(Landed(tag=slot.target_id, outcome=parcel, took_ms=0))
        self.wire.launch(self.transport, parcels, self._hear)

    # Land: what became of it.

    def _hear(self, landed: Landed) -> None:
        self.landed.append(landed)
        self.bell.set()

    async def _land(self, *, within: float) -> None:
        """Wait for results up to `within` seconds, then record all there are."""
        if not self.landed and within > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(within):
                    await self.bell.wait()
        self.bell.clear()
        news, self.landed = self.landed, []
        try:
            if news:
                await self._record([(self.air[landed.tag], landed) for landed in news])
        finally:
            # What could not be recorded has landed all the same: the next pump finds it in doubt.
            for landed in news:
                self.air.pop(landed.tag, None)

    async def _record(self, news: list[tuple[Slot, Landed]]) -> None:
        """Into the database first, then whatever follows from it."""
        idempotent, settings_ = self.transport.capabilities.idempotent, knobs.retry_knobs()
        verdicts = [
            retry.decide(landed.outcome, attempt=slot.attempt, idempotent=idempotent, knobs=settings_)
            for slot, landed in news
        ]
        landings = [
            landing_of(slot, landed, verdict, fence=self.lease.fence)
            for (slot, landed), verdict in zip(news, verdicts, strict=True)
        ]
        counts = await self.clerk.record(landings)
        for (slot, _), landing in zip(news, landings, strict=True):
            await self._came_down(slot, landing)
        if clean := sum(isinstance(landed.outcome, Sent) for _, landed in news):
            await self._count_clean(clean)
        for verdict in verdicts:
            await self._affect_account(verdict)
        for run in counts:
            await self._affect_run(run)

    async def _came_down(self, slot: Slot, landing: Landing) -> None:
        """Its next part follows, or its place is free."""
        del self.air[slot.target_id]
        permits = self._permits_of(slot.run)
        permits.settle(slot.permits.pop(0))
        if landing.status is not TargetStatus.SENDING:
            self.agenda.leave([slot.target_id])
            permits.give_back(slot.permits)
            if landing.status is TargetStatus.PENDING and not self.over:
                self.leaving, self.rest, self.again = False, None, True
        elif self.over:
            await self._give_back([slot])
        else:
            gap = self.rng.uniform(settings.PART_GAP_MIN_MS, settings.PART_GAP_MAX_MS) / 1000
            slot.part, slot.at = landing.parts_done, time.monotonic() + gap
            self.agenda.follow(slot)

    async def _count_clean(self, sends: int) -> None:
        if self.slow_down.slowed:
            await self.clerk.ask(partial(self.slow_down.count_clean_sends, sends))

    async def _affect_run(self, counts: Counts) -> None:
        run = self.served[counts.run_id]
        events.run_changed(run.run_id, run.whose.owner_id)
        if (counts.pending == 0 and counts.sending == 0) or counts.canceled:
            await self.clerk.ask_about(run.run_id, partial(lifecycle.settle, run.run_id))
        elif knobs.trips(counts.sent, counts.failed) and await self.clerk.ask_about(
            run.run_id, partial(lifecycle.trip, run.run_id)
        ):
            await self._drop_agenda()

    async def _pause_run(self, run_id: int, why: str) -> None:
        """It cannot go on as it is; unless somebody stopped it already."""
        try:
            await self.clerk.ask_about(run_id, partial(_pause, run_id, why))
        except lifecycle.WrongStateError:
            log.info("already_stopped", run=run_id)

    async def _affect_account(self, verdict: Verdict) -> None:
        match verdict.effect:
            case Effect.NONE:
                return
            case Effect.SLOW_DOWN | Effect.HOLD:
                await self._hold(verdict.retry_after or LOOK_AGAIN, slower=verdict.effect is Effect.SLOW_DOWN)
            case Effect.OFFLINE:
                await self._stop_account(Account.Status.OFFLINE, verdict.error)
            case Effect.FLAG:
                await self._stop_account(Account.Status.FLAGGED, verdict.error)
            case Effect.FIRST_CONTACTS:
                now = datetime.now(UTC)
                await self.clerk.ask(partial(first_contacts.lock, self.account, at=now, until=None))
            case _:
                assert_never(verdict.effect)
        await self._drop_agenda()

    async def _hold(self, seconds: float, *, slower: bool) -> None:
        await self.clerk.ask(partial(self.slow_down.hold, seconds, slower=slower))
        for permits in self.permits.values():
            await self.clerk.ask(partial(permits.hold, seconds))

    async def _stop_account(self, status: Account.Status, reason: str) -> None:
        await self.clerk.ask(partial(lifecycle.stop_account, self.account, status=status, reason=reason))
        await self._wind_down(Rest(until=None, reason=WaitReason.ACCOUNT_STOPPED))

    # What the shift holds.

    async def _drop_agenda(self) -> None:
        await self._give_back(self.agenda.drop())

    async def _give_back(self, slots: list[Slot]) -> None:
        """Claimed, not begun: the targets go back to pending, the permits to the limiter."""
        for run_id in {slot.run.run_id for slot in slots}:
            targets = [slot.target_id for slot in slots if slot.run.run_id == run_id]
            await self.clerk.ask_about(run_id, partial(_let_go, run_id, targets, self.lease.fence))
        self.agenda.leave(slot.target_id for slot in slots)
        for slot in slots:
            self._permits_of(slot.run).give_back(slot.permits)


def _error_rate(turn: Turn) -> float:
    return pacing.error_rate(turn.run.sent, turn.run.failed)


def _slot(run: Served, unit: Unit, target: Claimed, permits: Permits, gap: float) -> Slot:
    """A target's first message on the agenda; permits for parts that it has already go back."""
    left = len(run.parts) - target.parts_done
    permits.give_back(unit.permits[left:])
    return Slot(
        at=permits.moment(unit),
        target=target,
        run=run,
        part=target.parts_done,
        permits=list(unit.permits[:left]),
        planned_ms=unit.at_ms,
        gap=gap,
    )


def _parcel(slot: Slot) -> Parcel | Rejected | TryAgain:
    """The message for the wire, or why it does not leave: whatever begins also lands."""
    late = datetime.now(UTC) - slot.began_at
    if late.total_seconds() > settings.LEASE_SECONDS:
        # This process stood still. Another pump may have the account by now, and have called the message lost.
        return TryAgain(reason=f"held up for {late.total_seconds():.0f} s before it could leave")
    try:
        return slot.parcel()
    except MissingVariableError as error:
        return Rejected(reason=str(error))
    except Exception:
        log.exception("not_written", target=slot.target_id)
        return Rejected(reason="internal error while the message was written")


def _let_go(run_id: int, targets: list[int], fence: int) -> None:
    if claims.let_go(targets, fence=fence, now=datetime.now(UTC)):
        lifecycle.settle(run_id)


def _pause(run_id: int, why: str) -> None:
    lifecycle.pause(Run.objects.get(pk=run_id), reason=PauseReason.ERROR_RATE, detail=why)
