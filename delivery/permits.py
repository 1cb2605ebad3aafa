"""A pump's dealings with the limiter: it asks for permits, reports what became of them, and reminds Redis of
what the ledger knows when it forgot."""

import math
import random
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from django.conf import settings

from accounts.models import Account
from config.redis import client
from delivery import knobs, pacing
from delivery.lease import Lease
from delivery.limiter import Ask, Away, Forgotten, Granted, LeaseLost, Limiter, Unit, Wait
from delivery.limits import day_of, effective_limits, why_never
from delivery.rebuild import memory

MOST_AT_ONCE = 300  # units in one grant
A_FEW = 10  # as many as a paced account can use within the horizon
PACED_BY = ("profile", "zone", "warmup_start", "warmup_step", "warmup_ceiling", "warmup_clean_days")
FRESH = 2.0  # seconds for which limits that were read count as those that hold


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """Redis' clock minus the monotonic one, in milliseconds: somewhere between these.

    The answer may have been under way, or waited for its turn, before it was read. So a message leaves by the
    earliest that it can be, and has landed by the latest.
    """

    earliest_ms: float
    latest_ms: float

    @classmethod
    def read(cls, now_ms: int, *, asked: float, answered: float) -> "Clock":
        return cls(earliest_ms=now_ms - answered * 1000, latest_ms=now_ms + 1 - asked * 1000)

    @classmethod
    def guess(cls) -> "Clock":
        difference = (time.time() - time.monotonic()) * 1000
        return cls(earliest_ms=difference, latest_ms=difference)


@dataclass(slots=True, kw_only=True)
class News:
    """What became of permits, as the limiter has yet to hear it."""

    settled: dict[str, int] = field(default_factory=dict)
    returned: list[str] = field(default_factory=list)


class Permits:
    """The permits of one account for one action, during one shift."""

    def __init__(self, account: Account, lease: Lease, action: str) -> None:
        self.account = account
        self.lease = lease
        self.action = action
        self._read_limits()
        minute_ms = int(settings.MINUTE_SECONDS * 1000)
        self._limiter = Limiter(
            client(),
            minute_ms=minute_ms,
            hour_ms=60 * minute_ms,
            horizon_ms=int(settings.HORIZON_SECONDS * 1000),
            lease_ttl_ms=knobs.lease_ms(),
        )
        self._news = News()
        self._free_at_ms = 0
        self._lock = threading.Lock()  # the pump reports while a thread of the clerk asks
        self._clock = Clock.guess()
        self._rng = random.Random()
        self._limiter.adopt(lease, action)
        if account.held_until is not None and account.held_until > datetime.now(UTC):
            # An answer to another action may have asked for it, or Redis was away when it did.
            self._limiter.hold(account.pk, action, math.ceil(account.held_until.timestamp() * 1000))

    def take(
        self, *, cost: int, error_rate: float, in_hand: Mapping[str, int], in_the_air: int
    ) -> Granted | Wait | LeaseLost | Away:
        """Send times for the next targets of `cost` messages each.

        `in_hand` are the permits that this pump still holds, each with its planned time: they, and the ledger,
        are what a limiter that forgot is told. May run in a thread while the pump settles and gives back.
        """
        if time.monotonic() - self._read_at >= FRESH:
            self.account.refresh_from_db(fields=PACED_BY)
            self._read_limits()
        news = self._collect()
        before = time.monotonic()
        answer = self._limiter.take(self._ask(cost, error_rate, news))
        if isinstance(answer, Forgotten):
            self._remind(cost, in_hand, in_the_air)
            before = time.monotonic()
            answer = self._limiter.take(self._ask(cost, error_rate, news))
        match answer:
            case Granted(now_ms=now_ms) | Wait(now_ms=now_ms):
                self._clock = Clock.read(now_ms, asked=before, answered=time.monotonic())
                return answer
            case LeaseLost():
                return answer
            case Away():
                self._untold(news)
                return answer
            case Forgotten():
                return Away(reason="Redis forgets what it is told")

    def _read_limits(self) -> None:
        """A person may change them while a shift is under way."""
        self._read_at = time.monotonic()
        self.limits = effective_limits(self.account, self.action)
        self.pace = pacing.pace_of(self.limits)

    def why_never(self, cost: int) -> str:
        """A sentence if no waiting could ever let `cost` messages leave together; else nothing."""
        return why_never(self.account, self.limits, cost)

    def settle(self, permit: str) -> None:
        """Its message has landed: the receiver saw it by now at the latest."""
        with self._lock:
            self._news.settled[permit] = self._now_ms()

    def give_back(self, permits: Iterable[str]) -> None:
        with self._lock:
            self._news.returned.extend(permits)

    def report(self) -> None:
        """Tell the limiter what was settled and given back, without asking for more."""
        news = self._collect()
        if news.settled or news.returned:
            answer = self._limiter.settle(
                self.lease, self.action, news.settled, news.returned, free_at_ms=self._free_at_ms
            )
            if isinstance(answer, Away):
                self._untold(news)

    def _collect(self) -> News:
        with self._lock:
            news, self._news = self._news, News()
        return news

    def _untold(self, news: News) -> None:
        """Redis may have heard: what it is told twice counts once."""
        with self._lock:
            self._news.settled |= news.settled
            self._news.returned += news.returned

    def hold(self, seconds: float) -> None:
        self._limiter.hold(self.account.pk, self.action, self._now_ms() + int(seconds * 1000))

    def moment(self, unit: Unit) -> float:
        """When a unit may begin, on the monotonic clock."""
        return (unit.at_ms - self._clock.earliest_ms) / 1000

    def shortest_gap(self, cost: int, error_rate: float) -> float:
        """Seconds that the next target waits at least, once one of `cost` messages has begun."""
        return self._stretched(pacing.shortest_gap_ms(self.limits, cost), error_rate) / 1000

    def left(self, gap: float) -> None:
        """A target has begun, later than planned or not: the gap after it begins now."""
        with self._lock:
            self._free_at_ms = max(self._free_at_ms, self._now_ms() + round(gap * 1000))

    def _now_ms(self) -> int:
        return math.ceil(time.monotonic() * 1000 + self._clock.latest_ms)

    def _ask(self, cost: int, error_rate: float, news: News) -> Ask:
        gaps = self._gaps(cost, A_FEW, error_rate)
        if sum(gaps) < settings.HORIZON_SECONDS * 1000:
            gaps += self._gaps(cost, MOST_AT_ONCE - A_FEW, error_rate)
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
            free_at_ms=self._free_at_ms,
        )

    def _gaps(self, cost: int, count: int, error_rate: float) -> list[int]:
        """The gaps after the next units, longer while the run has errors (P6) and the account is slowed (P7)."""
        gaps = pacing.gaps_ms(self.limits, cost=cost, count=count, stretch=1, rng=self._rng)
        return [round(self._stretched(gap, error_rate)) for gap in gaps]

    def _stretched(self, gap_ms: float, error_rate: float) -> float:
        slower = self.account.slow_factor * settings.MINUTE_SECONDS / 60
        return knobs.delay(gap_ms / 1000, error_rate) * slower * 1000

    def _remind(self, cost: int, in_hand: Mapping[str, int], in_the_air: int) -> None:
        """Redis lost this account, with what it was told of it: the ledger knows."""
        known = memory(
            self.account,
            self.action,
            pace=self.pace,
            day=day_of(self.account, datetime.now(UTC)),
            reach_ms=self._limiter.reach_ms(self.pace),
            gap_ms=self._gaps(cost, 1, 0.0)[0],
            in_hand=in_hand,
            in_the_air=in_the_air,
        )
        self._limiter.rebuild(self.account.pk, self.action, known)
