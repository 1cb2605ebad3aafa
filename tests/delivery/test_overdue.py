"""On-time work first, overdue work slowly, whatever was planned and however long everything was down."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delivery.overdue import Drain, LastSend, Serve, Sleep, Work, drains_at, has_room, overdue_before, turn

MIDNIGHT = datetime(2026, 3, 11, tzinfo=UTC)
NOON = MIDNIGHT + timedelta(hours=12)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
DRAIN = Drain()
PER_HOUR, PER_DAY = 10, 50
GAP = timedelta(minutes=5)  # the longest that the account leaves after any message


@dataclass(frozen=True)
class Send:
    at: datetime
    planned: datetime

    @property
    def overdue(self) -> bool:
        return self.planned < overdue_before(DRAIN, self.at)


def allowed_from(sent: Sequence[Send], now: datetime) -> datetime:
    """Return when the limits allow the next message, by counting: 3 to 5 minutes apart, 10 an hour, 50 a day."""
    at = now
    if sent:
        at = max(at, sent[-1].at + 3 * MINUTE + Random(len(sent)).random() * 2 * MINUTE)
    if len(sent) >= PER_HOUR:
        at = max(at, sent[-PER_HOUR].at + HOUR)
    today = [send for send in sent if send.at.date() == at.date()]
    return at if len(today) < PER_DAY else datetime.combine(at.date() + DAY, datetime.min.time(), UTC)


def room(sent: Sequence[Send], left: Sequence[datetime], now: datetime) -> bool:
    def planned(until: datetime) -> int:
        return sum(now < at <= until for at in left)

    lately = sum(send.at > now - HOUR for send in sent)
    today = sum(send.at.date() == now.date() for send in sent)
    midnight = datetime.combine(now.date() + DAY, datetime.min.time(), UTC)
    return has_room(PER_HOUR, sent=lately, planned=planned(now + HOUR)) and has_room(
        PER_DAY, sent=today, planned=planned(midnight)
    )


def play(planned: Sequence[datetime], outages: Sequence[tuple[datetime, datetime]]) -> list[Send]:
    """One account that does what it is told, sleeps when told to, and is down now and then."""
    left, sent, now = sorted(planned), list[Send](), MIDNIGHT
    for _ in range(20 * len(planned) + 20):
        now = next((end for start, end in outages if start <= now < end), now)
        border = overdue_before(DRAIN, now)
        on_time = [at for at in left if border <= at <= now]
        overdue = [at for at in left if at < border]
        work = Work(
            on_time=bool(on_time),
            overdue=bool(overdue),
            next_planned=min((at for at in left if at > now), default=None),
            room=room(sent, left, now),
        )
        last = LastSend(at=sent[-1].at, attempt_id=len(sent)) if sent else None
        match turn(DRAIN, work, last, now, gap=GAP):
            case Sleep(until=None):
                return sent
            case Sleep(until=until) if until is not None:
                assert until > now, "a sleep that ends at once would be a spin"
                now = until
            case serve:
                if (later := allowed_from(sent, now)) > now:
                    now = later
                    continue
                chosen = (on_time if serve is Serve.ON_TIME else overdue)[0]
                left.remove(chosen)
                sent.append(Send(at=now, planned=chosen))
    raise AssertionError(f"{len(left)} of {len(planned)} are still to be sent.")


moments = st.integers(0, 3 * 24 * 60).map(lambda minute: MIDNIGHT + minute * MINUTE)
outages = st.lists(
    st.tuples(moments, st.integers(1, 1500)).map(lambda pair: (pair[0], pair[0] + pair[1] * MINUTE)),
    max_size=3,
)


@given(planned=st.lists(moments, min_size=20, max_size=80), outages=outages)
@settings(max_examples=30, deadline=None)
def test_all_of_it_leaves_never_bunched_and_never_over_the_caps(
    planned: list[datetime], outages: list[tuple[datetime, datetime]]
) -> None:
    sent = play(planned, outages)
    assert sorted(send.planned for send in sent) == sorted(planned), "nothing is lost, nothing doubled"
    assert all(send.at >= send.planned for send in sent)
    for before, send in pairwise(sent):
        if send.overdue:
            assert send.at - before.at >= DRAIN.gap_min, "overdue work never follows close behind anything"
    for first, eleventh in zip(sent, sent[PER_HOUR:], strict=False):
        assert eleventh.at - first.at >= HOUR
    days = [send.at.date() for send in sent]
    assert all(days.count(day) <= PER_DAY for day in days)


@given(seed=st.integers(0, 10_000), a_day=st.integers(5, 48), outage=moments, hours=st.integers(1, 30))
@settings(max_examples=30, deadline=None)
def test_what_is_planned_after_an_outage_does_not_wait_for_what_was_held_up(
    seed: int, a_day: int, outage: datetime, hours: int
) -> None:
    """The plan: 10 minutes apart, at most 6 an hour and 48 a day, for three days."""
    rng = Random(seed)
    tens = [day * 144 + ten for day in range(3) for ten in sorted(rng.sample(range(144), a_day))]
    back = outage + hours * HOUR
    sent = play([MIDNIGHT + 10 * ten * MINUTE for ten in tens], [(outage, back)])
    assert [send for send in sent if send.planned >= back + HOUR and send.at - send.planned > MINUTE] == []


def test_a_morning_of_fifty_after_an_outage_is_drained_one_by_one() -> None:
    planned = [MIDNIGHT + number * MINUTE for number in range(50)]
    sent = play(planned, [(MIDNIGHT, NOON)])
    assert [send.planned for send in sent] == planned, "the oldest first"
    gaps = [(after.at - before.at) / MINUTE for before, after in pairwise(sent)]
    assert min(gaps) >= 3
    assert len(set(gaps[:9])) == 9, "each gap is drawn anew"


def test_the_gap_is_drawn_between_its_bounds_and_stays_as_it_was_drawn() -> None:
    drawn = [drains_at(DRAIN, LastSend(at=NOON, attempt_id=number)) for number in range(1000)]
    assert drawn == [drains_at(DRAIN, LastSend(at=NOON, attempt_id=number)) for number in range(1000)]
    minutes = [(at - NOON) / MINUTE for at in drawn if at is not None]
    assert 3 <= min(minutes) < 3.1
    assert 4.9 < max(minutes) <= 5
    assert drains_at(DRAIN, None) is None


LAST = LastSend(at=NOON - MINUTE, attempt_id=7)
DRAINS = drains_at(DRAIN, LAST)
LATER, MUCH_LATER = NOON + timedelta(seconds=30), NOON + HOUR


@pytest.mark.parametrize(
    ("on_time", "overdue", "next_planned", "last", "expected"),
    [
        (True, True, None, None, Serve.ON_TIME),  # on time goes first
        (True, False, None, LAST, Serve.ON_TIME),  # and does not wait for the long gap
        (False, True, None, None, Serve.OVERDUE),  # nothing was ever sent: no reason to wait
        (False, True, None, LastSend(at=NOON - HOUR, attempt_id=7), Serve.OVERDUE),
        (False, True, None, LAST, Sleep(until=DRAINS)),
        (False, True, LATER, LAST, Sleep(until=LATER)),  # what comes due before that wakes it
        (False, True, MUCH_LATER, LAST, Sleep(until=DRAINS)),
        (False, False, MUCH_LATER, LAST, Sleep(until=MUCH_LATER)),
        (False, False, None, LAST, Sleep(until=None)),
    ],
)
def test_whose_turn_it_is(
    on_time: bool,
    overdue: bool,
    next_planned: datetime | None,
    last: LastSend | None,
    expected: Serve | Sleep,
) -> None:
    work = Work(on_time=on_time, overdue=overdue, next_planned=next_planned)
    assert turn(DRAIN, work, last, NOON) == expected


@pytest.mark.parametrize(
    ("cap", "sent", "planned", "expected"), [(None, 99, 99, True), (10, 4, 5, True), (10, 5, 5, False)]
)
def test_room_is_left_for_what_is_planned(cap: int | None, sent: int, planned: int, expected: bool) -> None:
    assert has_room(cap, sent=sent, planned=planned) is expected
    work = Work(on_time=False, overdue=True, next_planned=MUCH_LATER, room=expected)
    last = LastSend(at=NOON - HOUR, attempt_id=7)
    assert turn(DRAIN, work, last, NOON) == (Serve.OVERDUE if expected else Sleep(until=MUCH_LATER))


def test_an_overdue_one_waits_if_the_gap_behind_it_would_hold_up_one_that_is_planned() -> None:
    soon = NOON + 4 * MINUTE
    work = Work(on_time=False, overdue=True, next_planned=soon)
    last = LastSend(at=NOON - HOUR, attempt_id=7)
    assert turn(DRAIN, work, last, NOON, gap=5 * MINUTE) == Sleep(until=soon)
    assert turn(DRAIN, work, last, NOON, gap=4 * MINUTE) is Serve.OVERDUE
