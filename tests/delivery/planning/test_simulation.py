"""New people, new chats and planned times in a simulated account (SPEC N4, P18)."""

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest

from delivery.forecast import simulate
from delivery.pacing import Limits
from delivery.planning.arrivals import A_CYCLE, ChatsLeft, Queue
from delivery.planning.people_ahead import planned
from delivery.planning.planned_jobs import Arrival, divided
from delivery.planning.simulation import AccountSimulation
from delivery.planning.values import (
    Allowance,
    Job,
    NewChats,
    PauseCause,
    Planned,
    Point,
    Sender,
    Timeline,
    Who,
    rank_of,
)
from delivery.window import Window

NOON = datetime(2026, 3, 11, 12, tzinfo=UTC)
A_DAY = timedelta(days=1)
DAYTIME = Window(start_hour=6, end_hour=18, zone="Etc/UTC")
FAST = Limits(per_minute=60)


def job(targets: int, **values: object) -> Job:
    given: dict[str, object] = {"window": DAYTIME, "ready_at": NOON, "own": True, **values}
    return Job(targets=targets, **given)  # type: ignore[arg-type]  # each by its name


def account(
    *jobs: Job, per_day: int | None = None, new_per_day: int = 0, chats: NewChats | None = None
) -> Sender:
    people = {"message": Allowance(limits=FAST, day_caps=(new_per_day,))} if new_per_day else {}
    return Sender(
        zone="Etc/UTC",
        allowances={"message": Allowance(limits=FAST, day_caps=(per_day,) if per_day else ())},
        jobs=jobs,
        people=people,
        new_chats=chats or NewChats(),
    )


def foreseen(sender: Sender) -> Timeline:
    return simulate([planned(sender, now=NOON)], now=NOON)


def by_day(curve: tuple[Point, ...]) -> Mapping[int, int]:
    days, done = Counter[int](), 0
    for point in curve:
        days[(point.at - NOON.replace(hour=0)).days] += point.done - done
        done = point.done
    return +days


def test_known_people_go_first_and_new_ones_follow_over_the_days() -> None:
    found = foreseen(account(job(30), job(25, who=Who.NEW), new_per_day=10))
    assert by_day(found.curve) == {0: 40, 1: 10, 2: 5}
    assert by_day(found.people) == {0: 10, 1: 10, 2: 5}
    assert {pause.cause for pause in found.pauses} == {PauseCause.NEW_PEOPLE}


def test_new_people_take_part_in_the_cap_of_all_messages() -> None:
    """Adds nobody on top: with 12 messages a day, the known ones take the first day alone."""
    found = foreseen(account(job(20), job(10, who=Who.NEW), per_day=12, new_per_day=5))
    assert by_day(found.curve) == {0: 12, 1: 12, 2: 6}


def test_another_run_that_comes_first_uses_up_the_places_of_the_day() -> None:
    ahead = job(8, who=Who.NEW, own=False, rank=rank_of(1, NOON), planned=[Planned(at=NOON, targets=8)])
    found = foreseen(account(ahead, job(10, who=Who.NEW), new_per_day=10))
    assert by_day(found.curve) == {0: 2, 1: 8}


def test_a_quota_of_new_chats_holds_until_its_cycle_ends_and_older_chats_go_on() -> None:
    chats = NewChats(left=3, until=NOON + 4 * A_DAY, size=20)
    found = foreseen(account(job(5, who=Who.NEW), job(9, who=Who.NEW_CHAT), chats=chats))
    assert by_day(found.people) == {0: 8, 4: 6}
    assert [pause.cause for pause in found.pauses] == [PauseCause.NEW_CHATS]


def test_new_chats_wait_for_the_end_of_a_lock() -> None:
    chats = NewChats(locked_until=NOON + 2 * A_DAY)
    assert by_day(foreseen(account(job(5), job(4, who=Who.NEW_CHAT), chats=chats)).curve) == {0: 5, 2: 4}


def test_nobody_leaves_before_the_planned_time() -> None:
    drip = [Planned(at=NOON + timedelta(hours=hour), targets=2) for hour in (1, 3)]
    found = foreseen(account(job(4, planned=drip)))
    assert (found.starts_at, found.finishes_at) == (drip[0].at, drip[1].at + timedelta(seconds=1.01))
    assert {pause.cause for pause in found.pauses} == {PauseCause.PLANNED}


def test_what_finds_a_day_full_leaves_planned_work_in_its_place() -> None:
    """As the engine moves it: 6 today, and tomorrow 6 beside the 4 that are planned there by a run behind it."""
    later = job(4, own=False, rank=rank_of(-1, NOON), planned=[Planned(at=NOON + A_DAY, targets=4)])
    assert by_day(foreseen(account(job(20), later, per_day=10)).curve) == {0: 10, 1: 6, 2: 4}


def test_targets_without_a_day_never_leave() -> None:
    found = foreseen(account(job(5, planned=[Planned(at=NOON, targets=3)])))
    assert found.finishes_at is None
    assert found.curve[-1].done == 3


@pytest.mark.parametrize(("days", "left"), [(0, 3), (4, 20), (33, 20), (40, 20)])
def test_each_cycle_has_its_chats(days: int, left: int) -> None:
    chats = ChatsLeft(NewChats(left=3, until=NOON + 4 * A_DAY, size=20))
    assert chats.left(NOON + days * A_DAY) == left


def test_a_look_ahead_begins_no_cycle() -> None:
    chats = ChatsLeft(NewChats(left=1, until=NOON + A_DAY, size=20))
    assert chats.opens_at(NOON + 2 * A_DAY) == NOON + 2 * A_DAY
    chats.take(NOON, 1)
    assert (chats.left(NOON), chats.opens_at(NOON)) == (0, NOON + A_DAY)
    chats.take(NOON + A_DAY, 20)
    assert chats.opens_at(NOON + 2 * A_DAY) == NOON + A_DAY + A_CYCLE


def test_a_queue_knows_who_is_left_of_each_time() -> None:
    queue = Queue(job(5, planned=[Planned(at=NOON, targets=3), Planned(at=NOON + A_DAY, targets=2)]))
    assert queue.waiting_between(NOON, NOON + A_DAY) == 3
    assert queue.take(4) == [(NOON, 3), (NOON + A_DAY, 1)]
    assert queue.waiting_between(NOON, NOON + A_DAY) == 0
    assert queue.waiting_between(NOON, NOON + 2 * A_DAY) == 1
    assert queue.waiting() == [(NOON + A_DAY, 1)]
    assert (queue.released(NOON), queue.released(NOON + A_DAY)) == (0, 1)


def test_a_long_plan_is_looked_through_once_and_not_for_each_message(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, day_of = list[datetime](), AccountSimulation._day_of

    def counted(simulation: AccountSimulation, at: datetime) -> int:
        asked.append(at)
        return day_of(simulation, at)

    monkeypatch.setattr(AccountSimulation, "_day_of", counted)
    hourly = [Planned(at=NOON + timedelta(hours=hour), targets=1) for hour in range(400)]
    found = foreseen(account(job(400, planned=hourly), per_day=10))
    assert found.curve[-1].done == 400
    assert len(asked) < 400 * 50


def test_a_run_is_divided_into_known_people_new_ones_and_those_with_times() -> None:
    arrivals = [
        Arrival(who=Who.NEW, at=None, targets=2),
        Arrival(who=Who.NEW, at=NOON + A_DAY, targets=3),
        Arrival(who=Who.KNOWN, at=None, targets=7),  # counted with the rest
    ]
    known, new = divided(job(20), arrivals)
    assert (known.who, known.targets, known.planned) == (Who.KNOWN, 15, ())
    assert (new.who, new.targets, [each.targets for each in new.planned]) == (Who.NEW, 5, [2, 3])
