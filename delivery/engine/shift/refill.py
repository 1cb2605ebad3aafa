"""Refills the agenda of a shift: chooses a run, takes permits for it and claims its targets."""

from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import assert_never

import structlog

from accounts.models import Account
from delivery import conf, pacing
from delivery.engine import claims, next_run, uploads
from delivery.engine.claims import Claimed
from delivery.engine.newness import COUNTED_TODAY, NEEDS_RIGHT, newness
from delivery.engine.next_run import Turn
from delivery.engine.permits import Permits
from delivery.engine.shift.consequences import Consequences
from delivery.engine.shift.contents import contents_of
from delivery.engine.shift.outgoing import ServedRun, first_outgoing
from delivery.engine.shift.prepare import Preparation
from delivery.engine.shift.state import LOOK_AGAIN, ShiftState
from delivery.engine.wakeups import Rest
from delivery.limiter import Away, Granted, LeaseLost, Wait
from delivery.limits import work_hours
from delivery.models import Run
from delivery.outcomes import Outcome
from delivery.planning import drip, new_people, replan
from delivery.sessions import new_chats
from delivery.states import WaitReason

log = structlog.get_logger(__name__)


class Refill:
    """Puts more messages on the agenda, or finds out what the shift has to wait for."""

    def __init__(self, state: ShiftState, consequences: Consequences, preparation: Preparation) -> None:
        self.state = state
        self.consequences = consequences
        self.preparation = preparation

    async def run(self) -> None:
        """Fetch more. The result is out of date if the agenda was dropped meanwhile, or a target came back."""
        state = self.state
        dropped, state.rest, state.again = state.agenda.dropped, None, False
        await self._find_work()
        if state.agenda.dropped != dropped:
            await state.drop_agenda()
        if (state.agenda.dropped != dropped or state.again) and not state.over:
            state.leaving, state.rest = False, None

    async def _find_work(self) -> None:
        state = self.state
        busy = bool(state.in_flight or state.agenda)
        answer = await state.batches.ask(partial(_next_turn, state.account, busy=busy))
        if isinstance(answer, Rest):
            if answer.reason is WaitReason.CLOCKS:
                await state.wind_down(answer)
            state.wait(answer)
            return
        if (opens := work_hours.begin_at(state.account, now=datetime.now(UTC))) is not None:
            state.wait(Rest(until=opens, reason=WaitReason.WORKING_HOURS))
            return
        if state.trouble.present:
            answer = replace(answer, most=1)
            if not await self._may_try():
                return
        known = None if answer.run.run_id in state.kept_back else state.served.get(answer.run.run_id)
        run = known or await self.preparation.prepare(answer.run.run_id)
        if run is not None and not await self._spread(run):
            await self._take_permits(run, answer)

    async def _may_try(self) -> bool:
        """Decide whether an account in trouble may try a message; else the shift knows what it waits for."""
        state = self.state
        if (until := state.trouble.held_until()) is not None:
            state.wait(Rest(until=until, reason=WaitReason.SLOWED))
            return False
        outcome = await state.trouble.ask(state.transport)
        if outcome is None:
            return True
        now, keys = datetime.now(UTC), state.transport.capabilities.idempotent
        verdict = state.trouble.judge(outcome, attempt=1, idempotent=keys, began_at=now)
        await self.consequences.for_account(verdict)
        state.wait(Rest(until=state.account.held_until, reason=WaitReason.SLOWED))
        return False

    async def _spread(self, run: ServedRun) -> bool:
        """Plan targets of a drip anew that an outage made overdue, so that they stay apart; return whether any were."""
        if run.drip is None:
            return False
        return bool(
            await self.state.batches.ask(
                partial(drip.catch_up, run.drip, self.state.account, now=datetime.now(UTC))
            )
        )

    async def _take_permits(self, run: ServedRun, turn: Turn) -> None:
        state = self.state
        permits = state.permits_of(run)
        if never := permits.why_never(len(run.parts)):
            await self.consequences.pause_run(run.run_id, never)
            return
        slows = conf.slows(turn.run.sent, turn.run.failed)
        if slows and not state.slowed.get(run.run_id):
            log.info("run_slowed", run=run.run_id, account=state.account.pk, error_rate=_error_rate(turn))
        state.slowed[run.run_id] = slows
        # Only those of its action: it would never hear what became of the others.
        held = [
            each
            for each in [*state.in_flight.values(), *state.agenda.messages()]
            if each.run.whose.action == run.whose.action
        ]
        answer = await state.batches.ask(
            partial(
                permits.take,
                cost=len(run.parts),
                error_rate=_error_rate(turn),
                in_hand={permit: outgoing.planned_ms for outgoing in held for permit in outgoing.permits},
                in_flight=len(state.in_flight),
                rights={each.right: each.planned_ms for each in held if each.right},
                new_people=True,
                people_under_way=sum(each.new_person == COUNTED_TODAY for each in held),
            )
        )
        match answer:
            case Granted():
                await self._claim(run, answer, permits, turn)
            case Wait(until_ms=until_ms, reason=WaitReason.CLOCKS, now_ms=now_ms, detail=detail):
                rest = Rest.after((until_ms - now_ms) / 1000, WaitReason.CLOCKS, detail)
                await state.wind_down(rest)
            case Wait(until_ms=until_ms, reason=reason, now_ms=now_ms):
                if reason is WaitReason.PER_DAY:
                    await self._plan_anew(run, min(now_ms, until_ms - 1))
                elif reason in pacing.LONG_SPANS:
                    await self._plan_anew(run, now_ms, until_ms=until_ms)
                state.wait(Rest.after((until_ms - now_ms) / 1000, reason))
            case LeaseLost():
                log.warning("lease_lost", account=state.account.pk)
                await state.wind_down(Rest.soon())
            case Away(reason=reason):
                log.warning("limiter_away", account=state.account.pk, reason=reason)
                await state.wind_down(Rest.after(LOOK_AGAIN, WaitReason.LIMITER_AWAY))
            case _:
                assert_never(answer)

    async def _spread_people(self, run: ServedRun, *, full: bool) -> int:
        """Move new people for whom there is no room any more to later days; return how many."""
        state = self.state
        full = full and not any(each.right for each in [*state.in_flight.values(), *state.agenda.messages()])
        moved = await state.batches.ask(
            partial(_spread_people, run.run_id, state.account, datetime.now(UTC), full=full)
        )
        if moved:
            log.info("new_people_spread", account=state.account.pk, run=run.run_id, targets=moved)
        return moved

    async def _plan_anew(self, run: ServedRun, now_ms: int, *, until_ms: int | None = None) -> None:
        """Move targets that do not fit into a full day, or span of days, to days that can take them; the runs say so.

        The day is the day of the limiter's answer, not of the present clock: at midnight the new day is not full.
        """
        now, action = datetime.fromtimestamp(now_ms / 1000, UTC), run.whose.action
        until = None if until_ms is None else datetime.fromtimestamp(until_ms / 1000, UTC)
        account = self.state.account
        while await self.state.batches.ask(partial(replan.full_day, account, action, now=now, until=until)):
            log.info("day_full", account=account.pk, action=action)

    async def _claim(self, run: ServedRun, granted: Granted, permits: Permits, turn: Turn) -> None:
        state, units, rights = self.state, granted.units, list(granted.rights)
        now, most = datetime.now(UTC), min(len(granted.units), turn.most or len(granted.units))
        who = newness(state.account, permits.pace, now=now)
        limited = who.counts_people and not who.subscribers
        chats = await self._new_chats(now)
        claimed = await state.batches.ask_about(
            run.run_id,
            partial(
                claims.claim,
                run.run_id,
                state.account.pk,
                fence=state.lease.fence,
                most=most,
                now=now,
                planned=turn.planned,
                who=replace(who, most_new=len(rights), most_anew=granted.anew) if limited else who,
                most_chats=chats,
            ),
        )
        refused = await self._read_contents(run, claimed) if run.own_contents else {}
        for stale in state.agenda.forget({target.target_id for target in claimed}):
            permits.give_back(stale.held)
        gap = permits.shortest_gap(len(run.parts), _error_rate(turn))
        # A target whose intent is being written was released and is claimed anew: it goes on as it was.
        going = {outgoing.target_id for outgoing in state.agenda.beginning}
        for unit, target in zip(units, claimed, strict=False):
            if target.target_id in going:
                permits.give_back(unit.permits)
            else:
                able = state.transport.capabilities
                outgoing = first_outgoing(
                    run,
                    unit,
                    target,
                    permits,
                    right=rights.pop() if target.new_person in NEEDS_RIGHT and rights else "",
                    gap=gap,
                    checks_numbers=able.number_check,
                    shows_typing=able.typing and state.account.shows_typing,
                )
                outgoing.refused = refused.get(target.target_id)
                state.agenda.add(outgoing)
        for unit in units[len(claimed) :]:
            permits.give_back(unit.permits)
        permits.give_back(rights)
        over = limited and len(claimed) < most
        moved = await self._spread_people(run, full=not granted.anew) if over else 0
        if not claimed:
            # Paused or stopped since it was chosen, or another fence: look again, not at once.
            state.wait(Rest.after(0 if moved else LOOK_AGAIN, WaitReason.NOTHING_TO_SEND))

    async def _new_chats(self, now: datetime) -> int | None:
        """Return how many new chats the service's own quota allows; None where it tells of none."""
        if not self.state.transport.capabilities.own_limits:
            return None
        return await self.state.batches.ask(partial(new_chats.left, self.state.account, now=now))

    async def _read_contents(self, run: ServedRun, claimed: list[Claimed]) -> dict[int, Outcome]:
        """Give the targets of a queue their contents; return, by target, why a file of theirs has no handle."""
        state, refused = self.state, dict[int, Outcome]()
        found = await state.batches.ask(partial(contents_of, [target.target_id for target in claimed]))
        claimed[:] = [replace(target, content=found.get(target.target_id)) for target in claimed]
        for target in claimed:
            parts = (target.content and target.content.parts) or ()
            why = await uploads.upload_own(run.run_id, state.account, state.transport, parts, run.handles)
            if why is not None:
                refused[target.target_id] = why
        return refused


def _next_turn(account: Account, *, busy: bool) -> Turn | Rest:
    return next_run.clocks_apart() or next_run.next_turn(account, now=datetime.now(UTC), busy=busy)


def _spread_people(run_id: int, account: Account, now: datetime, *, full: bool) -> int:
    return new_people.spread(Run.objects.get(pk=run_id), account, now=now, today_is_full=full)


def _error_rate(turn: Turn) -> float:
    return pacing.error_rate(turn.run.sent, turn.run.failed)
