"""Months of messages to new people through the limiter: no day and no week ever holds more of them than it may.

People are met again and again, messages are under way at midnight, and Redis forgets. `World` keeps the ledger, and
tells of each person what `engine/newness.py` reads from it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from uuid import uuid4

import pytest
from redis import Redis

from delivery.engine.lease import Lease, lease_key
from delivery.limiter import Ask, Day, Done, Forgotten, Granted, Limiter, Memory, Met, Use
from delivery.pacing import Pace, bucket_width

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
WEEK = 7 * DAY
START = 20_000 * DAY
PER_DAY, PER_WEEK = 3, 6
PACE = Pace(
    per_minute=0,
    per_hour=0,
    per_day=0,
    batch_size=0,
    batch_pause_ms=0,
    new_per_day=PER_DAY,
    new_per_week=PER_WEEK,
)


@dataclass
class UnderWay:
    person: int
    right: str
    permit: str
    anew: bool
    before: int
    lands_at: int


@dataclass
class World:
    """An account that writes to new people at random."""

    redis: Redis
    rng: Random
    moves: bool = True  # whether the limiter hears of messages to people whom it has counted
    now: int = START
    mark: str = ""
    sent: list[tuple[int, int]] = field(default_factory=list)  # person, at
    under_way: list[UnderWay] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.lease = Lease(account_id=uuid4().int % 10**9, fence=1, token="token")
        self.redis.set(lease_key(self.lease.account_id), "token")
        self.limiter = Limiter(self.redis, horizon_ms=10_000, now_ms=lambda: self.now, lease_ttl_ms=10**12)
        self.settled: dict[str, int] = {}
        self.returned: list[str] = []
        self.people: list[Met] = []

    def day(self) -> Day:
        start = self.now // DAY * DAY
        return Day(start_ms=start, end_ms=start + DAY)

    def step(self) -> None:
        """Let some time pass, hear of what arrived, and write to somebody if that is allowed."""
        near_midnight = self.rng.random() < 0.3
        to_midnight = DAY - self.now % DAY
        self.now += (
            max(0, to_midnight - self.rng.randrange(3_000)) if near_midnight else self.rng.randrange(5 * HOUR)
        )
        self.land()
        if self.rng.random() < 0.05:
            self.limiter.forget(self.lease.account_id)
        for _ in range(4):
            self.write(self.rng.randrange(14))
            self.now += self.rng.randrange(1_500)
            self.land()

    def land(self) -> None:
        for message in [each for each in self.under_way if each.lands_at <= self.now]:
            self.under_way.remove(message)
            self.sent.append((message.person, message.lands_at))
            self.settled[message.permit] = message.lands_at
            if message.right or self.moves:
                before = message.before if self.moves else 0
                self.people.append(
                    Met(right=message.right, at_ms=message.lands_at, anew=message.anew, before_ms=before)
                )

    def write(self, person: int) -> None:
        if any(each.person == person for each in self.under_way):
            return
        granted = self.take()
        if granted is None:
            return
        last = max((at for who, at in self.sent if who == person), default=0)
        today, week = last >= self.day().start_ms, last >= self.now - WEEK + MINUTE
        allowed = today or (granted.rights and (week or granted.anew > 0))
        [permit], rights = granted.units[0].permits, list(granted.rights)
        if not allowed:
            self.returned += [permit, *rights]
            return
        right = "" if today else rights.pop()
        self.returned += rights
        self.under_way.append(
            UnderWay(
                person=person,
                right=right,
                permit=permit,
                anew=not today and not week,
                before=last if week or today else 0,
                lands_at=granted.units[0].at_ms + self.rng.randrange(2_000),
            )
        )

    def take(self) -> Granted | None:
        for _ in range(3):
            ask = Ask(
                lease=self.lease,
                action="message",
                pace=PACE,
                day=self.day(),
                want=1,
                cost=1,
                gaps_ms=[1],
                settled=self.settled,
                returned=self.returned,
                people=self.people,
                people_under_way=sum(not each.right for each in self.under_way),
                new_wanted=1,
                mark=self.mark,
            )
            answer = self.limiter.take(ask)
            if isinstance(answer, Forgotten):
                done = self.limiter.rebuild(self.lease, "message", self.memory())
                assert isinstance(done, Done)
                self.mark = done.mark
                continue
            self.settled, self.returned, self.people = {}, [], []
            self.mark = getattr(answer, "mark", "")
            return answer if isinstance(answer, Granted) else None
        raise AssertionError("the limiter forgets what it is told")

    def memory(self) -> Memory:
        """Return what the ledger knows: of each person the last message."""
        last: dict[int, int] = {}
        for person, at in self.sent:
            last[person] = max(at, last.get(person, 0))
        width, counts = bucket_width(WEEK), dict[int, int]()
        for at in last.values():
            counts[at // width] = counts.get(at // width, 0) + 1
        rights = {each.right: each.lands_at for each in self.under_way if each.right}
        today = [at for at in last.values() if at >= self.day().start_ms]
        return Memory(
            day=self.day(),
            day_used=len(today),
            reach_ms=0,
            in_flight={each.permit: each.lands_at for each in self.under_way},
            rights=rights,
            counts_people=True,
            new_used=len(today) + len(rights),
            new_late=[at for at in today if at >= self.day().end_ms],
            new_counts={WEEK: counts},
        )


def most_in(sent: list[tuple[int, int]], span: int) -> int:
    """Return the most different people in any stretch of `span`."""
    ordered = sorted(sent, key=lambda each: each[1])
    return max(
        len({who for who, when in ordered[: place + 1] if when > at - span})
        for place, (_, at) in enumerate(ordered)
    )


def most_in_a_day(sent: list[tuple[int, int]]) -> int:
    days: dict[int, set[int]] = {}
    for who, at in sent:
        days.setdefault(at // DAY, set()).add(who)
    return max(map(len, days.values()))


def months(world: World) -> Iterator[int]:
    while world.now < START + 90 * DAY:
        world.step()
        yield world.now


@pytest.mark.parametrize("seed", range(6))
def test_no_day_and_no_week_has_too_many_new_people(redis: Redis, seed: int) -> None:
    world = World(redis=redis, rng=Random(seed))
    for _ in months(world):
        pass
    assert len(world.sent) > 200
    assert most_in_a_day(world.sent) == PER_DAY
    assert most_in(world.sent, WEEK) == PER_WEEK


def test_places_that_do_not_move_would_cross_the_limit(redis: Redis) -> None:
    """Shows that the test above can fail: with this, an account wrote to too many people in some weeks."""
    world = World(redis=redis, rng=Random(1), moves=False)
    for _ in months(world):
        pass
    assert most_in(world.sent, WEEK) > PER_WEEK


def test_two_messages_after_midnight_to_a_person_of_the_day_before_count_once(redis: Redis) -> None:
    world = World(redis=redis, rng=Random(0))
    world.now = world.day().end_ms - 10
    world.sent.append((1, world.now))
    done = world.limiter.rebuild(world.lease, "message", world.memory())
    assert isinstance(done, Done)
    midnight = world.day().end_ms
    people = [
        Met(at_ms=midnight + 1, before_ms=midnight - 10),
        Met(at_ms=midnight + 2, before_ms=midnight + 1),
    ]
    world.limiter.settle(world.lease, "message", {}, mark=done.mark, people=people)
    world.now = midnight + 3
    use = world.limiter.peek(world.lease.account_id, "message", PACE, world.day())
    assert isinstance(use, Use)
    assert (use.new_day, use.new_week) == (1, 1)
