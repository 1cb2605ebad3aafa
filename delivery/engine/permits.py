"""Asks the limiter for permits, reports which were used and which were not, and tells Redis what the ledger knows
where Redis has lost it."""

import math
import random
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import MappingProxyType

from django.conf import settings

from accounts.models import Account
from activity import counters
from config.redis.client import client
from delivery import clocks, conf, pacing
from delivery.clocks import Ahead, Clock, Clocks
from delivery.engine import clock_reading
from delivery.engine.clock_reading import database_clock, redis_clock
from delivery.engine.lease import Lease
from delivery.engine.newness import ANEW
from delivery.engine.rebuild import Hand, Spans, memory
from delivery.engine.wakeups import LONGEST_NAP
from delivery.limiter import (
    Ask,
    Away,
    Done,
    Forgotten,
    Granted,
    LeaseLost,
    Limiter,
    Met,
    Noted,
    Unit,
    Wait,
    WrongClock,
)
from delivery.limits import work_hours
from delivery.limits.lookup import day_of, effective_limits, why_never
from delivery.states import WaitReason

MOST_AT_ONCE = 300  # units in one grant
A_FEW = 10  # gaps by which to tell how many fit into the horizon
TRIES = 4  # a state that is rebuilt, and a clock that was set, or an answer that came late
CLOCKS_AGAIN_MS = 5000  # until clocks that disagree are compared again
LONGEST_MARGIN_MS = 60_000
CLOCKS = "@"  # stands between a mark and how the clocks differed, in what a lease keeps


@dataclass(slots=True, kw_only=True)
class News:
    """Permits that were settled or returned, and that the limiter does not know of yet."""

    settled: dict[str, int] = field(default_factory=dict)
    returned: list[str] = field(default_factory=list)
    people: list[Met] = field(default_factory=list)  # messages to new people


class Permits:
    """The permits of one account for one action, during one shift.

    The mark is that of the limiter's last answer. The lease has it whenever no permit is open, for the next shift;
    a shift that ends otherwise leaves none, and the next one counts by the ledger. With it goes by how much Redis'
    clock was ahead of the database's: a clock that is set between two shifts makes the state's times wrong.
    """

    def __init__(self, account: Account, lease: Lease, action: str) -> None:
        self.account = account
        self.lease = lease
        self.action = action
        # As they are when the shift starts: one that finds them changed ends (`shift/changes.py`).
        self.limits = effective_limits(self.account, self.action)
        self.pace = pacing.pace_of(self.limits)
        minute_ms = int(settings.MINUTE_SECONDS * 1000)
        self._limiter = Limiter(
            client(),
            minute_ms=minute_ms,
            hour_ms=60 * minute_ms,
            horizon_ms=int(settings.HORIZON_SECONDS * 1000),
            near_ms=int(LONGEST_NAP * 1000),
            lease_ttl_ms=conf.lease_ms(),
        )
        self._news = News()
        self._wants_people = False
        self._people_under_way = 0
        self._free_at_ms = 0
        self._lock = threading.Lock()  # the pump reports while a thread of `batching.py` asks
        self._calling = threading.Lock()  # each call needs the mark of the last one
        self._mark, self._ahead = _read_mark(lease.marks.get(action, ""))
        self._open: set[str] = set()  # permits of which the limiter has yet to hear
        self._clock = clocks.own()
        self._times_set = redis_clock.times_set
        self._rng = random.Random()
        if account.held_until is not None and account.held_until > datetime.now(UTC):
            # An answer to another action may have asked for it, or Redis was away when it did.
            self._hold_until(math.ceil(account.held_until.timestamp() * 1000))

    def take(
        self,
        *,
        cost: int,
        error_rate: float,
        in_hand: Mapping[str, int],
        in_flight: int,
        rights: Mapping[str, int] = MappingProxyType({}),
        new_people: bool = False,
        people_under_way: int = 0,
    ) -> Granted | Wait | LeaseLost | Away:
        """Ask for send times for the next targets of `cost` messages each, and return the answer.

        `in_hand` are the permits of this action that this pump still holds, each with its planned time, and `rights`
        its rights to write to new people: they, and the ledger, are what a limiter that forgot is told. `in_flight`
        counts the messages of all actions that are under way. With `new_people` the answer
        brings more of these rights, where new people have a limit. `people_under_way` are messages to new people on
        their way that have no right. May run in a thread while the pump settles and gives back.
        """
        hand = Hand(fence=self.lease.fence, permits=in_hand, in_flight=in_flight, rights=rights)
        self._wants_people = new_people and self.pace.counts_people
        self._people_under_way = people_under_way
        with self._calling:
            news = self._collect()
            try:
                answer = self._take(cost, error_rate, news, lambda now: self._remind(now, cost, hand))
            except BaseException:  # the database is away: it is asked again
                self._untold(news)
                raise
            if isinstance(answer, Away) or (isinstance(answer, Wait) and answer.reason is WaitReason.CLOCKS):
                self._untold(news)
            else:
                self._told(news, answer)
            self._leave_mark()
        return answer

    def _take(
        self, cost: int, error_rate: float, news: News, remind: Callable[[int], None]
    ) -> Granted | Wait | LeaseLost | Away:
        """Ask until there is an answer by clocks that agree and from a state that is known."""
        for _ in range(TRIES):
            database = database_clock.read()
            asked = time.monotonic()
            answer = self._limiter.take(self._ask(cost, error_rate, news, asked, database))
            match answer:
                case Granted(now_ms=now_ms, mark=mark) | Wait(now_ms=now_ms, mark=mark):
                    redis = Clock.read(now_ms, asked=asked, answered=time.monotonic())
                    if self._believe(mark, redis, Ahead.of(redis, database)):
                        return answer
                case WrongClock(now_ms=now_ms):
                    redis = Clock.read(now_ms, asked=asked, answered=time.monotonic())
                    if apart := self._apart(redis, now_ms):
                        return apart
                case Forgotten(now_ms=now_ms):
                    self._ahead = None
                    remind(math.ceil(now_ms + (time.monotonic() - asked) * 1000))
                case LeaseLost() | Away():
                    self._mark = ""
                    return answer
        return Away(reason="Redis forgets what it is told, or answers too late to compare the clocks")

    def _believe(self, mark: str, clock: Clock, ahead: Ahead) -> bool:
        """Decide whether an answer counts: not if Redis' clock was set since the state's times were written.

        Then the state is not known any more. What it granted is not used, and the ledger counts.
        """
        self._clock, self._mark = clock, mark
        before, self._times_set = self._times_set, redis_clock.note(clock)
        was_set = self._ahead is not None and ahead.differs_from(self._ahead)
        self._ahead = ahead
        if before == self._times_set and not was_set:
            return True
        self._mark = ""
        return False

    def _apart(self, redis: Clock, now_ms: int) -> Wait | None:
        """Return what to wait for if the clocks disagree; None if Redis was only slow to answer."""
        found = Clocks(redis=redis, database=database_clock.read(fresh=0), worker=clocks.own())
        sentence = found.disagreement(clock_reading.tolerance_ms())
        if not sentence:
            return None
        self._mark = ""
        clock_reading.complain(sentence, found)
        return Wait(
            until_ms=now_ms + CLOCKS_AGAIN_MS, reason=WaitReason.CLOCKS, now_ms=now_ms, detail=sentence
        )

    def why_never(self, cost: int) -> str:
        """Return a sentence if no waiting could ever let `cost` messages leave together; else an empty text."""
        return why_never(self.account, self.limits, cost)

    def settle(self, permit: str, *, at: float | None = None) -> None:
        """Note that the message of a permit has landed: the receiver saw it by now, or by `at` (monotonic)."""
        seen = self._now_ms() if at is None else math.ceil(at * 1000 + self._clock.latest_ms)
        with self._lock:
            self._news.settled[permit] = seen

    def wrote_to(self, *, right: str, level: int, before: datetime | None, at: float) -> datetime:
        """Note a message to a new person, seen by `at` (monotonic), and return that time; `before` is of the last one.

        `level` says in which spans they take a place (`newness.LEVEL`).
        """
        seen = math.ceil(at * 1000 + self._clock.latest_ms)
        last = math.ceil(before.timestamp() * 1000) if before is not None else 0
        if self.pace.counts_people:
            with self._lock:
                self._news.people.append(Met(right=right, at_ms=seen, anew=level == ANEW, before_ms=last))
        return datetime.fromtimestamp(seen / 1000, UTC)

    def give_back(self, permits: Iterable[str]) -> None:
        with self._lock:
            self._news.returned.extend(permits)

    def report(self) -> None:
        """Tell the limiter what was settled and given back, without asking for more.

        Also without the lease or the mark: the pump that serves the account now has to hear that messages landed.
        """
        with self._calling:
            news = self._collect()
            if news.settled or news.returned or news.people:
                answer = self._limiter.settle(
                    self.lease,
                    self.action,
                    news.settled,
                    news.returned,
                    mark=self._mark,
                    people=news.people,
                    free_at_ms=self._free_at_ms,
                )
                self._heard(answer)
                if isinstance(answer, Away):
                    self._untold(news)
                else:
                    self._told(news, answer)
            self._leave_mark()

    def _leave_mark(self) -> None:
        if self._mark and self._ahead and not self._open:
            self.lease.marks[self.action] = f"{self._mark}{CLOCKS}{self._ahead}"
        else:
            self.lease.marks.pop(self.action, None)

    def _heard(self, answer: Noted) -> None:
        self._mark = answer.mark if isinstance(answer, Done) else ""

    def _told(self, news: News, answer: object) -> None:
        """Note that the limiter knows of `news`, and which permits it granted."""
        self._open -= {*news.settled, *news.returned, *(met.right for met in news.people)}
        if isinstance(answer, Granted):
            self._open |= {permit for unit in answer.units for permit in unit.permits} | {*answer.rights}

    def _collect(self) -> News:
        with self._lock:
            news, self._news = self._news, News()
        return news

    def _untold(self, news: News) -> None:
        """Keep `news` for the next call. Redis may know of it: a permit reported twice counts once."""
        with self._lock:
            self._news.settled |= news.settled
            self._news.returned += news.returned
            self._news.people += news.people

    def hold(self, seconds: float) -> None:
        self._hold_until(self._now_ms() + int(seconds * 1000))

    def _hold_until(self, until_ms: int) -> None:
        """Hold all permits until then. Where the state is not known, `_remind` reads the same from the account."""
        with self._calling:
            if self._mark:
                self._heard(self._limiter.hold(self.lease, self.action, until_ms, mark=self._mark))
                self._leave_mark()

    def moment(self, unit: Unit) -> float:
        """Return when a unit may begin, on the monotonic clock."""
        return (unit.at_ms - self._clock.earliest_ms) / 1000

    def shortest_gap(self, cost: int, error_rate: float) -> float:
        """Return the seconds that the next target waits at least, once one of `cost` messages has begun."""
        return self._stretched(pacing.shortest_gap_ms(self.limits, cost), error_rate) / 1000

    def usual_gap(self) -> float:
        """Return the seconds between two messages at full speed, on average."""
        return pacing.usual_gap(self.limits) * settings.MINUTE_SECONDS / 60

    def left(self, free_in: float) -> None:
        """Note that a target has begun, at its planned time or later: the gap after it ends in so many seconds."""
        with self._lock:
            self._free_at_ms = max(self._free_at_ms, self._now_ms() + round(free_in * 1000))

    def _now_ms(self) -> int:
        return math.ceil(time.monotonic() * 1000 + self._clock.latest_ms)

    def _ask(self, cost: int, error_rate: float, news: News, asked: float, database: Clock) -> Ask:
        gaps = self._gaps(cost, A_FEW, error_rate)
        if (passed := sum(gaps)) < settings.HORIZON_SECONDS * 1000:
            # As many as a paced account can use within the horizon, and some more: gaps vary.
            fit = math.ceil(settings.HORIZON_SECONDS * 1000 * A_FEW / max(passed, 1) * 1.1)
            gaps += self._gaps(cost, min(fit, MOST_AT_ONCE) - A_FEW, error_rate)
        return Ask(
            lease=self.lease,
            action=self.action,
            pace=self.pace,
            day=day_of(self.account, datetime.now(UTC)),
            want=len(gaps),
            cost=cost,
            gaps_ms=gaps,
            settled=news.settled,
            returned=news.returned,
            people=news.people,
            people_under_way=self._people_under_way,
            new_wanted=len(gaps) if self._wants_people else 0,
            free_at_ms=self._free_at_ms,
            mark=self._mark,
            expected=clocks.expected_of_redis(
                database=database,
                worker=clocks.own(),
                at=asked,
                tolerance_ms=clock_reading.tolerance_ms(),
            ),
        )

    def _gaps(self, cost: int, count: int, error_rate: float) -> list[int]:
        """Return the gaps after the next units, longer while the run has errors (P6) and the account is slowed (P7)."""
        gaps = pacing.gaps_ms(self.limits, cost=cost, count=count, stretch=1, rng=self._rng)
        return [round(self._stretched(gap, error_rate)) for gap in gaps]

    def _stretched(self, gap_ms: float, error_rate: float) -> float:
        slower = self.account.slowness * settings.MINUTE_SECONDS / 60
        slower *= work_hours.ramp_factor(self.account, now=datetime.now(UTC))
        return conf.delay(gap_ms / 1000, error_rate) * slower * 1000

    def _remind(self, now_ms: int, cost: int, hand: Hand) -> None:
        """Tell Redis, which does not know this account or knows it wrongly, what the ledger knows.

        `now_ms` is the latest that Redis' clock can read.
        """
        known = memory(
            self.account,
            self.action,
            pace=self.pace,
            day=day_of(self.account, datetime.now(UTC)),
            spans=Spans(
                now_ms=now_ms,
                reach_ms=self._limiter.reach_ms(self.pace),
                gap_ms=self._gaps(cost, 1, 0.0)[0],
                margin_ms=int(min(clock_reading.tolerance_ms(), LONGEST_MARGIN_MS)),
                long_ms=tuple(self._limiter.spans_ms(self.pace).values()),
                week_ms=self._limiter.week_ms(self.pace),
            ),
            hand=hand,
        )
        self._heard(self._limiter.rebuild(self.lease, self.action, known))
        counters.tally(counters.LIMITER_REBUILDS)


def _read_mark(kept: str) -> tuple[str, Ahead | None]:
    """Return the mark that a shift left and how the clocks differed; no mark where that is not known."""
    mark, _, difference = kept.partition(CLOCKS)
    ahead = Ahead.parse(difference)
    return (mark, ahead) if ahead else ("", None)
