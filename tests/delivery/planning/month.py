"""Days of sending in simulated time, with the engine's own pieces.

The limiter in Redis, the ledger, the statements that choose a run and claim targets, the plans and the reports are the
real ones; the clock is moved, and the service takes each message a second after its time. `World` moves from one moment
at which something may happen to the next.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import ClassVar

import time_machine
from django.db import transaction
from django.db.models import F

from accounts.models import Account
from activity.models import Attempt, Inbound
from config.redis.client import client
from delivery import conf, lifecycle, pacing
from delivery.engine import claims, next_run
from delivery.engine.lease import Lease, lease_key
from delivery.engine.newness import ANEW, NEEDS_RIGHT, newness
from delivery.engine.next_run import Turn
from delivery.engine.rebuild import Hand, Spans, memory
from delivery.inbound import receipts
from delivery.limiter import Ask, Done, Forgotten, Granted, Limiter, Met, Wait
from delivery.limits import work_hours
from delivery.limits.lookup import day_of, effective_limits
from delivery.models import Run, RunTarget
from delivery.planning import new_people, replan
from delivery.sessions import new_chats
from delivery.states import TargetStatus, WaitReason
from delivery.window import closes_at

ACTION = "message"
HORIZON_MS = 20 * 60_000
A_MOMENT, LONG = timedelta(seconds=5), timedelta(hours=12)


@dataclass(slots=True)
class Shift:
    """The memory of one account between two messages: the mark of the limiter, and its news for it."""

    account: Account
    lease: Lease
    mark: str = ""
    settled: dict[str, int] = field(default_factory=dict)
    returned: list[str] = field(default_factory=list)
    people: list[Met] = field(default_factory=list)
    next_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message that left: its target, its account, when, and to what kind of person."""

    target_id: int
    account_id: int
    at: datetime
    new_person: int


class World:
    """Accounts that send in simulated time."""

    SHARE_OF_BOUNCES: ClassVar[float] = 0.04

    def __init__(self, accounts: Iterable[Account], *, start: datetime, seed: int = 0) -> None:
        self.now = start
        self.rng = Random(seed)
        self.shifts = [self._shift(account) for account in accounts]
        self.limiter = Limiter(
            client(),
            horizon_ms=HORIZON_MS,
            now_ms=lambda: self._ms(self.now),
            lease_ttl_ms=10**12,
        )
        self.sent: list[Message] = []
        self.bounces: list[tuple[datetime, int, str]] = []

    def _shift(self, account: Account) -> Shift:
        lease = Lease(account_id=account.pk, fence=1, token="token")
        client().set(lease_key(account.pk), "token")
        Account.objects.filter(pk=account.pk).update(fence=1)
        return Shift(account=account, lease=lease)

    def run(
        self,
        *,
        until: datetime,
        done: Callable[[], bool],
        events: Sequence[tuple[datetime, Callable[[], object]]] = (),
    ) -> None:
        """Go on until all is done; each of `events` happens once, at its time."""
        coming = sorted(events, key=lambda event: event[0])
        while self.now < until:
            with time_machine.travel(self.now, tick=False):
                while coming and coming[0][0] <= self.now:
                    coming.pop(0)[1]()
                    self._wake()
                self._report()
                self._tick()
                for shift in self.shifts:
                    if shift.next_at is None or shift.next_at <= self.now:
                        shift.next_at = self._serve(shift)
                if done():
                    return
            moments = [shift.next_at for shift in self.shifts if shift.next_at]
            moments += [event[0] for event in coming[:1]] + [at for at, _, _ in self.bounces[:1]]
            for run in Run.objects.filter(finished_at=None):
                moments += [at for at in (run.closes_at, run.opens_at) if at is not None]
            self.now = min([*(at for at in moments if at > self.now), self.now + LONG]).astimezone(UTC)

    # What beat does.

    def _tick(self) -> None:
        for run in Run.objects.opening(self.now):
            lifecycle.open_window(run)
            self._wake()
        for run in Run.objects.closing(self.now):
            lifecycle.close_window(run)

    def _wake(self) -> None:
        for shift in self.shifts:
            shift.next_at = self.now

    def _report(self) -> None:
        """Let the service report the bounces whose time has come, some of them twice."""
        due = [each for each in self.bounces if each[0] <= self.now]
        self.bounces = [each for each in self.bounces if each[0] > self.now]
        for at, account_id, provider_id in due:
            for copy in range(1 + self.rng.randrange(2)):
                Inbound.objects.create(
                    account_id=account_id,
                    event_id=f"{provider_id}:{copy}",
                    kind=Inbound.Kind.RECEIPT,
                    provider_id=provider_id,
                    state="failed",
                    text="bounced",
                    at=at,
                )
        for account_id in {account_id for _, account_id, _ in due}:
            receipts.settle(account_id)

    # What a shift does.

    def _serve(self, shift: Shift) -> datetime | None:
        """Send what may leave within the horizon; return when to look again."""
        account = shift.account = Account.objects.get(pk=shift.account.pk)
        opens = work_hours.begin_at(account, now=self.now)
        if opens is not None:
            return opens
        turn = next_run.next_turn(account, now=self.now, busy=False)
        if not isinstance(turn, Turn):
            lifecycle.end_full_days(account)
            return turn.until or self.now + LONG
        answer = self._take(shift, turn)
        if isinstance(answer, Granted):
            return self._send(shift, turn, answer)
        self._wait(account, answer)
        again = self._at(answer.until_ms)
        return max(again, self.now + A_MOMENT)

    def _wait(self, account: Account, answer: Wait) -> None:
        """Plan anew what a full day or span has no room for, as `shift/refill.py` does."""
        if answer.reason is WaitReason.PER_DAY:
            while replan.full_day(account, ACTION, now=self.now):
                pass
        elif answer.reason in pacing.LONG_SPANS:
            while replan.full_day(account, ACTION, now=self.now, until=self._at(answer.until_ms)):
                pass
        lifecycle.end_full_days(account)

    def _take(self, shift: Shift, turn: Turn) -> Granted | Wait:
        limits = effective_limits(shift.account, ACTION)
        pace = pacing.pace_of(limits)
        for _ in range(3):
            errors = conf.delay(1.0, pacing.error_rate(turn.run.sent, turn.run.failed))
            gaps = pacing.gaps_ms(limits, cost=1, count=30, stretch=errors, rng=self.rng)
            asked = Ask(
                lease=shift.lease,
                action=ACTION,
                pace=pace,
                day=day_of(shift.account, self.now),
                want=turn.most or len(gaps),
                cost=1,
                gaps_ms=gaps[: turn.most or len(gaps)],
                settled=shift.settled,
                returned=shift.returned,
                people=shift.people,
                new_wanted=len(gaps) if pace.counts_people else 0,
                mark=shift.mark,
            )
            answer = self.limiter.take(asked)
            if isinstance(answer, Forgotten):
                self._remind(shift, pace, gaps[0])
                continue
            assert isinstance(answer, Granted | Wait), answer
            shift.mark, shift.settled, shift.returned, shift.people = answer.mark, {}, [], []
            return answer
        raise AssertionError("the limiter forgets what it is told")

    def _remind(self, shift: Shift, pace: pacing.Pace, gap_ms: int) -> None:
        spans = Spans(
            now_ms=self._ms(self.now),
            reach_ms=self.limiter.reach_ms(pace),
            gap_ms=gap_ms,
            long_ms=tuple(self.limiter.spans_ms(pace).values()),
            week_ms=self.limiter.week_ms(pace),
        )
        day = day_of(shift.account, self.now)
        known = memory(shift.account, ACTION, pace=pace, day=day, spans=spans, hand=Hand(fence=1))
        done = self.limiter.rebuild(shift.lease, ACTION, known)
        assert isinstance(done, Done)
        shift.mark = done.mark
        shift.settled, shift.returned, shift.people = {}, [], []

    def _send(self, shift: Shift, turn: Turn, granted: Granted) -> datetime:
        account, rights = shift.account, list(granted.rights)
        who = newness(account, pacing.pace_of(effective_limits(account, ACTION)), now=self.now)
        limited = who.counts_people and not who.subscribers
        if limited:
            who = replace(who, most_new=len(rights), most_anew=granted.anew)
        ends = self._ends(account, turn)
        units = [unit for unit in granted.units if self._at(unit.at_ms) < ends]
        claimed = claims.claim(
            turn.run.run_id,
            account.pk,
            fence=1,
            most=len(units),
            now=self.now,
            planned=turn.planned,
            who=who,
            most_chats=new_chats.left(account, now=self.now),
        )
        last = self.now
        for unit, target in zip(units, claimed, strict=False):
            right = rights.pop() if target.new_person in NEEDS_RIGHT and rights else ""
            last = self._land(shift, turn.run.run_id, target, unit.at_ms, unit.permits[0], right)
        for unit in granted.units[len(claimed) :]:
            shift.returned += unit.permits
        shift.returned += rights
        if limited and len(claimed) < len(units):
            run = Run.objects.get(pk=turn.run.run_id)
            new_people.spread(run, account, now=self.now, today_is_full=not granted.anew)
        lifecycle.settle(turn.run.run_id)
        return max(last, self.now + A_MOMENT)

    def _ends(self, account: Account, turn: Turn) -> datetime:
        """Return when the window of the run or the hours of the account end."""
        hours = work_hours.hours_of(account)
        return min([turn.run.closes_at, *([closes_at(hours, self.now)] if hours else [])])

    def _land(
        self, shift: Shift, run_id: int, target: claims.Claimed, at_ms: int, permit: str, right: str
    ) -> datetime:
        """Let a message arrive at its time, and write it down."""
        at = max(self._at(at_ms), self.now)
        shift.settled[permit] = self._ms(at)
        if target.new_person:
            before = self._ms(target.met) if target.met else 0
            anew = target.new_person == ANEW
            shift.people.append(Met(right=right, at_ms=self._ms(at), anew=anew, before_ms=before))
        provider_id = f"m{target.target_id}"
        with transaction.atomic():
            Run.objects.filter(pk=run_id).update(sending=F("sending") - 1, sent=F("sent") + 1)
            RunTarget.objects.filter(pk=target.target_id).update(
                status=TargetStatus.SENT, claimed_at=None, settled_at=at, provider_id=provider_id, attempts=1
            )
            Attempt.objects.create(
                target_id=target.target_id,
                run_id=run_id,
                account=shift.account,
                owner_id=shift.account.owner_id,
                action=ACTION,
                at=at,
                outcome="sent",
                provider_id=provider_id,
                took_ms=0,
                new_person=target.new_person,
            )
        self.sent.append(
            Message(
                target_id=target.target_id, account_id=shift.account.pk, at=at, new_person=target.new_person
            )
        )
        if self.rng.random() < self.SHARE_OF_BOUNCES:
            late = at + timedelta(minutes=self.rng.randrange(1, 4_000))
            self.bounces.append((late, shift.account.pk, provider_id))
            self.bounces.sort()
        return at

    def _at(self, ms: int) -> datetime:
        return datetime.fromtimestamp(ms / 1000, UTC)

    @staticmethod
    def _ms(at: datetime) -> int:
        return round(at.timestamp() * 1000)
