"""The pauses between the tries of a delivery."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from api.hooks.retries import JITTER, LONGEST, next_try, pause_after

NOW = datetime(2026, 11, 19, 12, tzinfo=UTC)


def test_pauses_grow_to_six_hours() -> None:
    rng = Random(1)
    lengths = [pause_after(n, rng).total_seconds() for n in range(1, 12)]
    assert lengths[0] < 10
    assert all(later > earlier for earlier, later in pairwise(lengths[:8]))
    assert max(lengths) <= LONGEST * (1 + JITTER)


@given(st.integers(1, 10_000), st.integers(0, 2**32))
def test_a_try_is_never_after_the_end_and_never_at_once(failures: int, seed: int) -> None:
    found = next_try(failures, now=NOW, give_up_at=NOW + timedelta(days=3), rng=Random(seed))
    assert found is None or NOW < found <= NOW + timedelta(days=3)


def test_within_three_days_there_are_about_twenty_tries() -> None:
    now, count, rng = NOW, 0, Random(3)
    while (again := next_try(count + 1, now=now, give_up_at=NOW + timedelta(days=3), rng=rng)) is not None:
        now, count = again, count + 1
    assert 15 <= count <= 30
