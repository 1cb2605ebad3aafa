"""Lands the messages of a shift: records what became of each, and starts what follows from it."""

import random
import time
from dataclasses import replace
from functools import partial

import structlog
from django.conf import settings

from activity import counters, ledger
from delivery import lifecycle
from delivery.engine.loop import Landed
from delivery.engine.newness import COUNTED_TODAY
from delivery.engine.permits import Permits
from delivery.engine.recording import Landing
from delivery.engine.shift.agenda import patience
from delivery.engine.shift.consequences import Consequences
from delivery.engine.shift.outgoing import Outgoing, landing_of
from delivery.engine.shift.state import LOOK_AGAIN, ShiftState
from delivery.engine.wakeups import Rest
from delivery.inbound import returns
from delivery.models import RunTarget
from delivery.outcomes import NEVER_LEFT, HeldBack, Rejected, Sent, ServerError, TryAgain, Unknown
from delivery.retry import Verdict
from delivery.states import TargetStatus, WaitReason

log = structlog.get_logger(__name__)

UNSTEADY = frozenset({"server_error", "unknown"})  # as the ledger names them
BAD = frozenset({TargetStatus.FAILED, TargetStatus.UNCONFIRMED})  # what the error rate counts


class Landings:
    """Records the results of one shift's messages."""

    def __init__(self, state: ShiftState, consequences: Consequences) -> None:
        self.state = state
        self.consequences = consequences
        self.landed: list[Landed] = []
        self.rng = random.Random()

    def hear(self, landed: Landed) -> None:
        """Keep a result for the next `land`, and wake the shift."""
        self.landed.append(landed)
        self.state.wake.set()

    async def land(self, *, within: float) -> None:
        """Wait for results up to `within` seconds, then record all there are."""
        state = self.state
        if not self.landed and within > 0:
            await state.woken(within=within)
        state.wake.clear()
        results, self.landed = self.landed, []
        try:
            if results:
                await self._settle([(state.in_flight[landed.tag], landed) for landed in results])
        finally:
            # A message that could not be recorded has landed all the same: the next pump finds it in doubt.
            for landed in results:
                state.in_flight.pop(landed.tag, None)

    async def _settle(self, results: list[tuple[Outgoing, Landed]]) -> None:
        """Take back the messages that the last look kept back, for they never left; record all others."""
        held_back = [outgoing for outgoing, landed in results if isinstance(landed.outcome, HeldBack)]
        try:
            if len(held_back) < len(results):
                await self._record([each for each in results if not isinstance(each[1].outcome, HeldBack)])
        finally:
            if held_back:
                await self._take_back(held_back)

    async def _record(self, results: list[tuple[Outgoing, Landed]]) -> None:
        """Write the results into the database first, then do whatever follows from them."""
        state = self.state
        keys = state.transport.capabilities.idempotent
        shared = await self._shared(results)
        verdicts = [
            state.trouble.judge(
                landed.outcome,
                attempt=outgoing.begun.attempt,
                idempotent=keys,
                began_at=outgoing.begun.at,
                answered=landed.left,
                shared=outgoing.target_id in shared,
            )
            for outgoing, landed in results
        ]
        verdicts = await self._left_open(results, verdicts)
        landings = [
            landing_of(outgoing, landed, verdict, fence=state.lease.fence)
            for (outgoing, landed), verdict in zip(results, verdicts, strict=True)
        ]
        waits = 0.0 if state.over else min(patience(outgoing.gap) for outgoing, _ in results)
        counts = await state.batches.record(landings, patience=waits)
        for landing in landings:
            whose = landing.whose
            counters.tally(
                counters.MESSAGES, account=str(whose.account_id), action=whose.action, outcome=landing.outcome
            )
        await self._keep_from_dead_addresses(results)
        for (outgoing, landed), landing in zip(results, landings, strict=True):
            await self._came_down(outgoing, landed, landing)
        if clean := sum(isinstance(landed.outcome, Sent) for _, landed in results):
            await self.consequences.count_clean(clean)
        for (outgoing, _), verdict in zip(results, verdicts, strict=True):
            await self.consequences.for_account(verdict, action=outgoing.run.whose.action)
        bad = {landing.whose.run_id for landing in landings if landing.status in BAD}
        for run in counts:
            await self.consequences.for_run(run, doubts=run.run_id in bad)

    async def _keep_from_dead_addresses(self, results: list[tuple[Outgoing, Landed]]) -> None:
        """Mark recipients whom the service does not know: every further message to them harms the account (L4)."""
        refused = {
            outgoing.target_id: landed.outcome.reason
            for outgoing, landed in results
            if isinstance(landed.outcome, Rejected) and landed.outcome.dead_address
        }
        if refused:
            await self.state.batches.ask(partial(returns.refused, self.state.account, refused))

    async def _shared(self, results: list[tuple[Outgoing, Landed]]) -> set[int]:
        """Return the targets at their last attempt whose failures others met too: their service is unsteady.

        A service that fails on every second message never fails on a handful in a row.
        """
        last = [
            outgoing.target_id
            for outgoing, landed in results
            if isinstance(landed.outcome, ServerError | Unknown)
            and outgoing.begun.attempt >= settings.MAX_ATTEMPTS
        ]
        if not last:
            return set()
        ask = partial(_met_by_others, self.state.account.pk, last)
        return await self.state.batches.ask(ask)

    async def _left_open(
        self, results: list[tuple[Outgoing, Landed]], verdicts: list[Verdict]
    ) -> list[Verdict]:
        """Leave messages to a person that are given up while an earlier try under the same key may have arrived.

        A refusal is an answer about the key, too. A service that failed until the last try says nothing about it.
        """
        given_up = [
            outgoing.target_id
            for (outgoing, landed), verdict in zip(results, verdicts, strict=True)
            if verdict.target is TargetStatus.FAILED and isinstance(landed.outcome, ServerError | TryAgain)
        ]
        doubts = await self.state.batches.ask(partial(_in_doubt, given_up)) if given_up else set()
        return [
            replace(verdict, target=TargetStatus.UNCONFIRMED) if outgoing.target_id in doubts else verdict
            for (outgoing, _), verdict in zip(results, verdicts, strict=True)
        ]

    async def _came_down(self, outgoing: Outgoing, landed: Landed, landing: Landing) -> None:
        """Put the target's next part on the agenda, or free its place."""
        state = self.state
        del state.in_flight[outgoing.target_id]
        permits = state.permits_of(outgoing.run)
        permit = outgoing.permits.pop(0)
        if isinstance(landed.outcome, NEVER_LEFT):
            permits.give_back([permit])
        else:
            permits.settle(permit, at=landed.at)
        _count_person(outgoing, landed, permits)
        if landing.status is not TargetStatus.SENDING:
            state.agenda.leave([outgoing.target_id])
            permits.give_back(outgoing.permits)
            if landing.status is TargetStatus.PENDING and not state.over:
                state.leaving, state.rest, state.again = False, None, True
        elif state.over:
            await state.give_back([outgoing])
        else:
            gap = self.rng.uniform(settings.PART_GAP_MIN_MS, settings.PART_GAP_MAX_MS) / 1000
            outgoing.part, outgoing.at = landing.parts_done, time.monotonic() + gap
            state.agenda.follow(outgoing)

    async def _take_back(self, messages: list[Outgoing]) -> None:
        """Make withheld targets pending as before they began; the rest of the agenda is asked for again."""
        state = self.state
        log.info("withheld", account=state.account.pk, targets=[outgoing.target_id for outgoing in messages])
        state.kept_back |= {outgoing.run.run_id for outgoing in messages}
        for outgoing in messages:
            del state.in_flight[outgoing.target_id]
        await state.give_back(messages, begun=True)
        await state.drop_agenda()
        state.wait(Rest.after(LOOK_AGAIN, WaitReason.NOTHING_TO_SEND))


def _count_person(outgoing: Outgoing, landed: Landed, permits: Permits) -> None:
    """Count a message to a new person, and use up its right, unless nothing left; the next parts need no right."""
    if isinstance(landed.outcome, NEVER_LEFT):
        if outgoing.right:
            permits.give_back([outgoing.right])
    elif outgoing.new_person:
        seen = permits.wrote_to(
            right=outgoing.right, level=outgoing.new_person, before=outgoing.met, at=landed.at
        )
        outgoing.new_person, outgoing.met = COUNTED_TODAY, seen
    outgoing.right = ""


def _in_doubt(targets: list[int]) -> set[int]:
    found = RunTarget.objects.filter(lifecycle.in_doubt(), pk__in=targets)
    return set(found.values_list("pk", flat=True))


def _met_by_others(account_id: int, targets: list[int]) -> set[int]:
    def share(target_id: int) -> float:
        return ledger.share_of_others(account_id, target_id, outcomes=UNSTEADY)

    return {target_id for target_id in targets if share(target_id) > settings.ERROR_RATE_STOP}
