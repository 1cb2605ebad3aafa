"""Launches the messages of a shift that are due: the intent first, then the last look and the network.

The intents of a paced account are written a moment ahead, so that accounts can share a statement; each message still
leaves at its own time. What is called back in between does not leave.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from delivery.engine import last_look
from delivery.engine.last_look import LastLook
from delivery.engine.loop import Landed, NumberChecks, SendRequest, send_loop
from delivery.engine.shift.agenda import ahead
from delivery.engine.shift.outgoing import Outgoing
from delivery.engine.shift.state import LOOK_AGAIN, ShiftState
from delivery.engine.shift.typing import Typing
from delivery.engine.wakeups import Rest
from delivery.outcomes import HeldBack, Rejected
from delivery.states import WaitReason

IN_TIME = 0.4  # of the moment by which an intent is ahead: within this its statement starts


class Launches:
    """Sends the messages of one shift when their time has come; `hear` is told what became of each."""

    def __init__(self, state: ShiftState, *, hear: Callable[[Landed], None]) -> None:
        self.state = state
        self.hear = hear
        self.checks = NumberChecks(state.transport)
        self.typing = Typing(state.transport)
        self.refusals = 0  # how often in a row nothing that was due could begin

    async def launch_due(self) -> None:
        """Send every message that is due and may leave; give back the others."""
        state = self.state
        for outgoing in state.agenda.set_aside(time.monotonic()):
            self.checks.start(outgoing.target.address, partial(self._number_checked, outgoing))
        if (shown := state.agenda.next_typing(time.monotonic())) is not None:
            outgoing, until = shown
            intent = outgoing.intent(fence=state.lease.fence)
            allowed = partial(state.batches.may_begin, intent)
            self.typing.start(outgoing.target.address, until=until, allowed=allowed)
        due = state.agenda.pop_due(time.monotonic())
        if not due:
            return
        dropped = state.agenda.dropped
        intents = [outgoing.intent(fence=state.lease.fence) for outgoing in due]
        waits = IN_TIME * min(ahead(outgoing.gap) for outgoing in due)
        leaves = await last_look.ask(state.batches, intents, patience=waits)
        for outgoing, intent, leave in zip(due, intents, leaves, strict=True):
            if leave is not None:
                outgoing.look = LastLook(intent, leave, batches=state.batches, lost=lambda: state.lost)
        self._send_all([outgoing for outgoing in due if outgoing.look is not None], dropped=dropped)
        for outgoing in state.agenda.began(time.monotonic()):
            state.permits_of(outgoing.run).left(max(0.0, outgoing.at - time.monotonic()) + outgoing.gap)
        if refused := [outgoing for outgoing in due if outgoing.look is None]:
            # Paused, canceled, closed, opted out or no longer ours: the rest of the agenda is asked for again.
            await state.give_back(refused)
            await state.drop_agenda()
        self.refusals = self.refusals + 1 if len(refused) == len(due) else 0
        if self.refusals > 1:
            # Not again at once: by the database's clock a window may be over that is still open by ours.
            state.wait(Rest.after(LOOK_AGAIN, WaitReason.NOTHING_TO_SEND))

    async def stop_checks(self) -> None:
        """Stop asking whether numbers exist, and showing typing."""
        await self.checks.stop()
        await self.typing.stop()

    def _number_checked(self, outgoing: Outgoing, refused: Rejected | None) -> None:
        outgoing.refused = refused
        self.state.agenda.checked(outgoing)
        self.state.wake.set()

    def _send_all(self, messages: Sequence[Outgoing], *, dropped: int) -> None:
        """Send messages that have begun: those that are due now, and each of the others at its time."""
        self.state.in_flight |= {outgoing.target_id: outgoing for outgoing in messages}
        now = time.monotonic()
        self._send([outgoing for outgoing in messages if outgoing.at <= now])
        for outgoing in messages:
            if outgoing.at > now:
                self._send_later(outgoing, dropped=dropped)

    def _send_later(self, outgoing: Outgoing, *, dropped: int) -> None:
        """Send a message at its time; keep it back if the agenda was called back after it was taken from there."""
        if self.state.lost or self.state.agenda.dropped != dropped:
            held_back = HeldBack(reason="it was called back before its time")
            self.hear(Landed(tag=outgoing.target_id, outcome=held_back, took_ms=0, left=False))
        elif outgoing.at > time.monotonic():
            self.state.alarm.at(outgoing.at, partial(self._send_later, outgoing, dropped=dropped))
        else:
            self._send([outgoing])

    def _send(self, messages: Iterable[Outgoing]) -> None:
        requests = []
        for outgoing in messages:
            request = outgoing.request()
            if isinstance(request, SendRequest):
                requests.append(request)
            else:
                self.hear(Landed(tag=outgoing.target_id, outcome=request, took_ms=0, left=False))
        send_loop().launch(self.state.transport, requests, self.hear)
