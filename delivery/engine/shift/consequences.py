"""Applies the results of a shift to its runs and to its account."""

from functools import partial

import structlog

from delivery import conf, lifecycle, live
from delivery.engine import effects
from delivery.engine.recording import Counts
from delivery.engine.shift.state import ShiftState
from delivery.engine.wakeups import Rest
from delivery.limits.slow_down import SlowDown
from delivery.models import Run
from delivery.retry import Verdict
from delivery.states import PauseReason, WaitReason

log = structlog.get_logger(__name__)


class Consequences:
    """Ends or pauses runs, and slows down, holds or stops the account, as results demand."""

    def __init__(self, state: ShiftState) -> None:
        self.state = state
        self.slow_down = SlowDown(state.account, state.lease)

    async def count_clean(self, sends: int) -> None:
        """Count messages that went through towards the recovery of an account that was slowed down."""
        if self.slow_down.slowed:
            await self.state.batches.ask(partial(self.slow_down.count_clean_sends, sends))

    async def for_run(self, counts: Counts, *, doubts: bool) -> None:
        """End the run, or pause it for its errors.

        Unconfirmed targets count when a further target failed or is in doubt, not when one was sent.
        """
        state = self.state
        run = state.served[counts.run_id]
        live.run_changed(run.run_id, run.whose.owner_id)
        if (counts.pending == 0 and counts.sending == 0) or counts.canceled:
            await state.batches.ask_about(run.run_id, partial(lifecycle.settle, run.run_id))
        elif await self._tripped(counts, doubts=doubts) or self._errors_change_pace(counts):
            await state.drop_agenda()

    async def _tripped(self, counts: Counts, *, doubts: bool) -> bool:
        bad = counts.failed + counts.returned + (counts.unconfirmed if doubts else 0)
        if not conf.trips(counts.sent - counts.returned, bad):
            return False
        trip = partial(lifecycle.trip, counts.run_id, doubts=doubts)
        return bool(await self.state.batches.ask_about(counts.run_id, trip))

    def _errors_change_pace(self, counts: Counts) -> bool:
        """Decide whether the errors of a run ask for another pace than that of the permits taken for it (P6)."""
        bad = counts.failed + counts.unconfirmed + counts.returned
        slowed = conf.slows(counts.sent - counts.returned, bad)
        return self.state.slowed.get(counts.run_id, slowed) != slowed

    async def pause_run(self, run_id: int, why: str) -> None:
        """Pause a run that cannot continue as it is, unless somebody stopped it already."""
        try:
            await self.state.batches.ask_about(run_id, partial(_pause, run_id, why))
        except lifecycle.WrongStateError:
            log.info("already_stopped", run=run_id)

    async def for_account(self, verdict: Verdict, *, action: str = "") -> None:
        """Do to the account what a verdict asks for; then its agenda is out of date."""
        state = self.state
        for step in effects.steps(verdict, state.trouble, state.permits, action=action):
            await state.batches.ask(step)
        if verdict.effect in effects.WITHOUT_CONSEQUENCE:
            return
        if verdict.effect in effects.STOPS_ACCOUNT:
            await state.wind_down(Rest(until=None, reason=WaitReason.ACCOUNT_STOPPED))
        await state.drop_agenda()


def _pause(run_id: int, why: str) -> None:
    lifecycle.pause(Run.objects.get(pk=run_id), reason=PauseReason.ERROR_RATE, detail=why)
