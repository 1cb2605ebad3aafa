"""Places that owners share: one owner alone never takes them all."""

import threading
from concurrent.futures import CancelledError
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.shares import Full, NoPlaceError, SharedThreads, Shares

PATIENCE = 30  # seconds that only a broken test waits


class TestShares:
    def test_an_owner_gets_its_own_places_and_no_more(self) -> None:
        shares = Shares(total=4, each=2)
        assert [shares.take("ann") for _ in range(3)] == [None, None, Full.OWN]
        assert shares.take("ben") is None

    def test_all_places_together_are_limited(self) -> None:
        shares = Shares(total=3, each=2)
        assert [shares.take(owner) for owner in ("ann", "ann", "ben", "cid")] == [None, None, None, Full.ALL]

    def test_a_place_that_is_given_back_is_free_again(self) -> None:
        shares = Shares(total=2, each=1)
        with shares.place("ann"), pytest.raises(NoPlaceError) as refused, shares.place("ann"):
            pass
        assert refused.value.full is Full.OWN
        assert shares.taken("ann") == 0
        with shares.place("ann"):
            assert shares.taken("ann") == 1

    def test_a_place_is_given_back_after_an_error(self) -> None:
        shares = Shares(total=2, each=1)
        with pytest.raises(KeyError), shares.place("ann"):
            raise KeyError
        assert shares.taken("ann") == 0

    @pytest.mark.parametrize(("total", "each"), [(0, 1), (1, 0)])
    def test_no_place_at_all_is_a_mistake(self, total: int, each: int) -> None:
        with pytest.raises(ValueError, match="at least one place"):
            Shares(total=total, each=each)

    @given(
        total=st.integers(2, 6),
        each=st.integers(1, 10),
        moves=st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=60),
    )
    def test_one_owner_never_empties_it_and_nothing_is_lost(
        self, total: int, each: int, moves: list[tuple[str, bool]]
    ) -> None:
        shares, held = Shares(total=total, each=each), {"a": 0, "b": 0, "c": 0}
        for owner, comes in moves:
            if comes:
                held[owner] += shares.take(owner) is None
            elif held[owner]:
                shares.give_back(owner)
                held[owner] -= 1
            assert sum(held.values()) <= total
            assert all(0 <= number < total for number in held.values())
            assert {owner: shares.taken(owner) for owner in held} == held


class TestSharedThreads:
    def test_hanging_work_of_one_owner_does_not_hold_up_another(self) -> None:
        threads, opened = SharedThreads(total=4, each=3, name="test"), threading.Event()
        hanging = [threads.submit("ann", lambda: opened.wait(PATIENCE)) for _ in range(50)]
        assert threads.submit("ben", lambda: "done").result(PATIENCE) == "done"
        assert not any(future.done() for future in hanging)
        opened.set()
        assert all(future.result(PATIENCE) for future in hanging)

    def test_lines_take_turns(self) -> None:
        threads, opened, order = SharedThreads(total=1, each=1, name="test"), threading.Event(), list[str]()
        first = threads.submit("ann", lambda: opened.wait(PATIENCE))
        rest = [threads.submit(owner, partial(order.append, owner)) for owner in "aaabc"]
        opened.set()
        assert first.result(PATIENCE)
        for future in rest:
            future.result(PATIENCE)
        assert order == ["a", "b", "c", "a", "a"]

    def test_waiting_work_can_be_canceled_and_running_work_cannot(self) -> None:
        threads, begun, opened = (
            SharedThreads(total=2, each=1, name="test"),
            threading.Event(),
            threading.Event(),
        )

        def hang() -> bool:
            begun.set()
            return opened.wait(PATIENCE)

        running, waiting = threads.submit("ann", hang), threads.submit("ann", lambda: 1 / 0)
        assert begun.wait(PATIENCE)
        assert waiting.cancel()
        assert not running.cancel()
        opened.set()
        assert running.result(PATIENCE)
        with pytest.raises(CancelledError):
            waiting.result(PATIENCE)
        assert threads.submit("ann", lambda: "next").result(PATIENCE) == "next"

    def test_an_error_reaches_who_asked_and_the_place_is_free(self) -> None:
        threads = SharedThreads(total=1, each=1, name="test")
        with pytest.raises(ZeroDivisionError):
            threads.submit("ann", lambda: 1 / 0).result(PATIENCE)
        assert threads.submit("ann", lambda: 1).result(PATIENCE) == 1
