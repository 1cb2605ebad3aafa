"""The round of a shift: launch what is due, refill the agenda when it is empty, land what came back.

Each of the three steps has a class of its own (`launch.py`, `refill.py`, `land.py`); they share a `ShiftState`.
"""

import asyncio
import threading
import time
from collections.abc import Callable

import structlog
from django.conf import settings

from accounts.models import Account
from delivery.engine.lease import Lease
from delivery.engine.loop import send_loop
from delivery.engine.shift.changes import Seen
from delivery.engine.shift.consequences import Consequences
from delivery.engine.shift.land import Landings
from delivery.engine.shift.launch import Launches
from delivery.engine.shift.prepare import Preparation
from delivery.engine.shift.refill import Refill
from delivery.engine.shift.state import ShiftState
from delivery.engine.wakeups import Rest
from delivery.transports.base import Transport

log = structlog.get_logger(__name__)

LOOK_AROUND = 2.0  # seconds until a shift that waits looks whether its worker stops
AT_LEAST = 60.0  # seconds that a shift lasts where other accounts wait for its thread


class Shift:
    """The work of one pump on one account, for some minutes.

    `seen` is what the account looked like before it was read; `crowded` says whether other accounts wait for a thread.
    """

    def __init__(
        self,
        account: Account,
        lease: Lease,
        transport: Transport,
        *,
        seen: Seen,
        stopping: threading.Event,
        crowded: Callable[[], bool] = lambda: False,
    ) -> None:
        self.state = ShiftState(account, lease, transport)
        consequences = Consequences(self.state)
        self.refill = Refill(self.state, consequences, Preparation(self.state, consequences))
        self.landings = Landings(self.state, consequences)
        self.launches = Launches(self.state, hear=self.landings.hear)
        self.refilling: asyncio.Task[None] | None = None
        self.began = time.monotonic()
        self.ends = self.began + settings.PUMP_SECONDS
        self.seen = seen
        self.stopping = stopping  # set while the worker shuts down
        self.crowded = crowded

    async def serve(self) -> Rest:
        """Go round until nothing is due for a while or the shift is over; return what the account waits for."""
        state, loop = self.state, send_loop()
        with (
            loop.renewals.renewing(state.lease, lost=state.lose_lease),
            loop.changes.told(state.account.pk, self.seen, ended=state.end_soon, moved=state.look_for_work),
        ):
            try:
                while not await self._finished():
                    await self.launches.launch_due()
                    if self._wants_more():
                        self.refilling = asyncio.create_task(self.refill.run())
                        self.refilling.add_done_callback(lambda _: self.state.wake.set())
                    await self.landings.land(within=self._until_next())
            finally:
                await self._clear()
        return self.state.rest or Rest.soon()

    async def _finished(self) -> bool:
        state = self.state
        if not state.over and (state.lost or state.ending or self.stopping.is_set() or self._time_is_up()):
            await state.wind_down(Rest.soon())
        if state.moved:
            await state.choose_again()
        if self.refilling is not None:
            if not self.refilling.done():
                return False
            self.refilling.result()
            self.refilling = None
        return (state.leaving or state.over) and not (state.agenda or state.in_flight)

    def _time_is_up(self) -> bool:
        now = time.monotonic()
        return now >= self.ends or (now >= self.began + AT_LEAST and self.crowded())

    async def _clear(self) -> None:
        """Record every message that left, however the shift ends: nobody else can know what became of it."""
        state = self.state
        state.over = True
        if self.refilling is not None:
            await asyncio.wait([self.refilling])
        await self.launches.stop_checks()
        while state.in_flight:
            try:
                await self.landings.land(within=LOOK_AROUND)
            except Exception:  # the others may still be recorded
                log.exception("not_recorded", account=state.account.pk)
        await state.drop_agenda()
        for permits in state.permits.values():
            await state.batches.ask(permits.report)
        await state.transport.close()

    def _wants_more(self) -> bool:
        state = self.state
        if self.refilling or state.over or state.leaving or (state.rest is not None and not state.rest.due()):
            return False
        return not state.tries_out() and state.agenda.runs_low(time.monotonic())

    def _until_next(self) -> float:
        """Return the seconds until there is something to do, if nothing lands before."""
        state = self.state
        if state.over:
            return LOOK_AROUND
        if state.leaving and not (state.agenda or state.in_flight or self.refilling):
            return 0.0
        moments = [self.ends, time.monotonic() + LOOK_AROUND]
        if (next_at := state.agenda.next_at()) is not None:
            moments.append(next_at)
        if not (state.agenda.has_firsts() or state.leaving or self.refilling or state.tries_out()):
            moments.append(state.rest.at if state.rest is not None else 0.0)
        return max(0.0, min(moments) - time.monotonic())
