"""The agenda: by time, no more groups at once than allowed, gaps kept, and one message per target."""

from dataclasses import replace
from uuid import UUID

import pytest

from delivery.engine.claims import Claimed
from delivery.engine.recording import Ledgered
from delivery.engine.shift.agenda import AHEAD, FINEST, Agenda
from delivery.engine.shift.outgoing import Outgoing, ServedRun
from delivery.parts import FrozenPart, MessageBuilder

RUN = ServedRun(
    run_id=1,
    key=UUID(int=1),
    whose=Ledgered(run_id=1, owner_id=1, account_id=1, action="message"),
    parts=(FrozenPart(kind="text", text="Hello"),),
    builder=MessageBuilder(
        action="message", subject="", open_file=lambda _: pytest.fail("no file"), handles={}
    ),
)


def outgoing(target_id: int, at: float, *, gap: float = 0.0, run: ServedRun = RUN) -> Outgoing:
    target = Claimed(target_id=target_id, attempts=0, parts_done=0, address="a", name="", fields={})
    return Outgoing(at=at, target=target, run=run, part=0, permits=["p"], planned_ms=0, gap=gap)


def agenda(*moments: float, concurrency: int = 3, gap: float = 0.0) -> Agenda:
    made = Agenda(concurrency=concurrency)
    for number, at in enumerate(moments, 1):
        made.add(outgoing(number, at, gap=gap))
    return made


def due(made: Agenda, now: float) -> list[int]:
    popped = [each.target_id for each in made.pop_due(now)]
    made.began(now)
    return popped


def test_what_is_due_leaves_in_the_order_of_its_time() -> None:
    made = agenda(1.4, 1.0, 1.1)
    assert due(made, 1.2) == [2, 3]
    assert made.next_at() == 1.4


def test_no_more_groups_begin_than_may_be_in_flight() -> None:
    made = agenda(1.0, 1.0, 1.0, concurrency=2)
    assert due(made, 1.0) == [1, 2]
    assert made.next_at() is None
    made.leave([1])
    assert due(made, 1.1) == [3]


def test_a_group_that_has_begun_goes_on_even_where_no_other_may_begin() -> None:
    made = agenda(1.0, 1.0, concurrency=1)
    [first] = made.pop_due(1.0)
    made.began(1.0)
    first.at = 1.3
    made.follow(first)
    assert made.next_at() == 1.3
    assert due(made, 1.4) == [1]


def test_a_message_of_a_paced_account_is_begun_ahead_and_keeps_its_time() -> None:
    made = agenda(1.0, 2.5, gap=1.3)
    assert made.next_at() == pytest.approx(1.0 - AHEAD)
    assert made.pop_due(0.9) == []
    [first] = made.pop_due(0.95)
    assert first.at == 1.0
    assert made.began(0.97) == [first]
    assert made.next_at() == pytest.approx(2.5 - AHEAD)


def test_the_gap_after_a_message_that_was_begun_ahead_counts_from_its_own_time() -> None:
    made = agenda(1.0, 1.1, gap=1.3)
    made.pop_due(0.95)
    made.began(0.97)
    assert made.next_at() == pytest.approx(2.3 - AHEAD)
    [second] = made.pop_due(2.25)
    assert second.at == pytest.approx(2.3)


def test_a_message_that_its_own_intent_held_up_moves_the_next_one() -> None:
    made = agenda(1.0, 1.1, gap=1.3)
    made.pop_due(0.95)
    made.began(1.2)
    assert made.next_at() == pytest.approx(2.5 - AHEAD)


def test_an_account_without_pacing_begins_nothing_ahead() -> None:
    made = agenda(1.0, gap=0.1)
    assert made.pop_due(0.99) == []
    assert made.next_at() == 1.0


def test_what_was_held_up_does_not_bunch() -> None:
    made = agenda(1.0, 1.1, 1.2, gap=0.1)
    assert due(made, 1.9) == [1]
    assert made.next_at() == pytest.approx(2.0)
    assert due(made, 1.95) == []
    assert due(made, 2.05) == [2]
    assert made.next_at() == pytest.approx(2.15)


def test_a_gap_counts_from_when_the_message_left() -> None:
    made = agenda(1.0, 1.1, gap=0.1)
    made.pop_due(1.0)
    [left] = made.began(1.08)
    assert left.target_id == 1
    assert made.next_at() == pytest.approx(1.18)


def test_lateness_is_made_up_for_as_far_as_gaps_allow() -> None:
    made = agenda(1.0, 2.5, 4.0, gap=1.3)
    assert due(made, 1.4) == [1]
    assert made.next_at() == pytest.approx(2.7 - AHEAD)
    assert due(made, 2.7) == [2]
    assert made.next_at() == pytest.approx(4.0 - AHEAD)


def test_gaps_too_fine_to_wait_for_are_kept_on_the_average() -> None:
    made = agenda(*(1 + number / 100 for number in range(20)), concurrency=20, gap=0.01)
    assert len(due(made, 3.0)) == pytest.approx(FINEST / 0.01, abs=1)
    assert len(due(made, 3.1)) == pytest.approx(FINEST / 0.01, abs=1)


def test_an_action_keeps_its_own_gaps() -> None:
    made = agenda(1.0, 1.1, gap=5)
    made.add(outgoing(9, 1.05, gap=5, run=replace(RUN, whose=replace(RUN.whose, action="inmail"))))
    assert due(made, 1.06) == [1, 9]


def test_a_target_that_is_claimed_anew_loses_its_old_slot_and_its_place() -> None:
    made = agenda(1.0, 2.0)
    assert [stale.target_id for stale in made.forget({1})] == [1]
    assert made.next_at() == 2.0


def test_what_begins_is_still_held() -> None:
    made = agenda(1.0, 5.0)
    made.pop_due(1.0)
    assert [each.target_id for each in made.messages()] == [1, 2]
    assert [each.target_id for each in made.drop()] == [2]


def test_a_drop_is_noticed() -> None:
    made = agenda(1.0)
    before = made.dropped
    made.drop()
    assert made.dropped == before + 1
    assert not made


@pytest.mark.parametrize(
    ("moments", "now", "low"),
    [
        ((), 0.0, True),
        ((5.0,), 0.0, False),  # paced: what is there is enough until then
        ((0.0,) * 3, 1.0, True),  # not paced: as many as may be in flight
        ((0.0,) * 4, 1.0, False),
    ],
)
def test_more_is_fetched_in_time(moments: tuple[float, ...], now: float, *, low: bool) -> None:
    assert agenda(*moments).runs_low(now) is low


# Numbers that are checked first.


def test_a_number_is_checked_shortly_before_its_message_is_due_and_the_others_go_on() -> None:
    made = agenda(2.0, 3.0)
    stranger = made._firsts[0]
    stranger.unchecked = True
    assert made.set_aside(0.5) == []
    assert made.next_at() == 1.0
    assert made.set_aside(1.0) == [stranger]
    assert made.next_at() == 3.0
    assert [each.target_id for each in made.pop_due(3.0)] == [2]
    made.began(3.0)
    made.checked(stranger)
    assert made.pop_due(3.1) == [stranger]


def test_what_was_dropped_while_it_was_checked_does_not_come_back() -> None:
    made = agenda(1.0)
    stranger = made._firsts[0]
    stranger.unchecked = True
    made.set_aside(1.0)
    assert made
    assert made.messages() == [stranger]
    assert made.drop() == [stranger]
    made.checked(stranger)
    assert not made


def test_no_more_numbers_are_checked_at_once_than_groups_may_be_open() -> None:
    made = agenda(1.0, 1.1, 1.2, concurrency=2)
    for each in made._firsts:
        each.unchecked = True
    assert len(made.set_aside(5.0)) == 2
    assert made.set_aside(5.0) == []
    assert made.next_at() is None, "a check that ends wakes the shift"
    assert made.pop_due(5.0) == []


def test_typing_is_shown_once_before_the_next_message_alone() -> None:
    made = agenda(10.0, 20.0, gap=10.0)
    first, second = made._firsts
    first.typing = second.typing = 4.0
    assert made.next_at() == 6.0
    assert made.next_typing(5.9) is None
    assert made.next_typing(6.0) == (first, 10.0)
    assert made.next_typing(6.1) is None
    assert made.next_at() == pytest.approx(10.0 - AHEAD)
    assert due(made, 10.0) == [1]
    made.leave([1])
    assert made.next_at() == 16.0


def test_typing_waits_for_the_check_of_a_number_and_for_room() -> None:
    made = agenda(10.0, concurrency=1, gap=10.0)
    [first] = made._firsts
    first.typing, first.unchecked = 4.0, True
    assert made.next_typing(9.0) is None
    first.unchecked = False
    made.groups.add(99)
    assert made.next_typing(9.0) is None
    made.leave([99])
    assert made.next_typing(9.0) == (first, 10.0)


@pytest.mark.parametrize(
    ("gaps", "paced"), [((), True), ((1.5, 0.5), True), ((0.1,), False), ((1.5, 0.0), False)]
)
def test_only_a_long_gap_waits_for_the_steps_of_the_alarm(gaps: tuple[float, ...], *, paced: bool) -> None:
    made = Agenda(concurrency=3)
    for number, gap in enumerate(gaps):
        [made.add, made.follow][number](outgoing(number, 1.0, gap=gap))
    assert made.is_paced() is paced
