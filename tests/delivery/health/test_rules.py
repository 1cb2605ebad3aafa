"""From which shares on an account slows down and pauses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delivery.health.rules import Level, Tally, Thresholds, judged

EMAIL = Thresholds(lost=0.05, complained=0.001)
counts = st.integers(0, 2_000)
tallies = st.builds(Tally, sent=counts, failed=counts, returned=counts, complained=counts)


@pytest.mark.parametrize(
    ("tally", "level"),
    [
        (Tally(sent=49, returned=20), Level.UNKNOWN),  # too few messages
        (Tally(sent=40, failed=10, returned=9), Level.PAUSE),
        (Tally(sent=100), Level.GOOD),
        (Tally(sent=100, returned=2), Level.GOOD),
        (Tally(sent=100, returned=3), Level.NEAR),
        (Tally(sent=100, returned=5), Level.NEAR),  # at its threshold, not above it
        (Tally(sent=100, returned=6), Level.SLOW),
        (Tally(sent=95, failed=5, returned=1), Level.SLOW),  # failed at once or later: both count
        (Tally(sent=100, returned=10), Level.SLOW),
        (Tally(sent=100, returned=11), Level.PAUSE),
        (Tally(sent=3_000, complained=1), Level.GOOD),
        (Tally(sent=900, complained=1), Level.SLOW),
        (Tally(sent=900, complained=2), Level.SLOW),  # too few to stop everything
        (Tally(sent=900, complained=3), Level.PAUSE),
    ],
)
def test_the_worst_share_decides(tally: Tally, level: Level) -> None:
    assert judged(tally, EMAIL).level is level


@given(tallies, st.integers(1, 500))
def test_one_more_failure_never_makes_an_account_healthier(tally: Tally, more: int) -> None:
    order = list(Level)
    worse = tally + Tally(returned=more)
    assert order.index(judged(worse, EMAIL).level) >= order.index(judged(tally, EMAIL).level)


@given(tallies, tallies)
def test_a_fresh_start_forgets_what_was_before_and_nothing_else(before: Tally, after: Tally) -> None:
    base = {name: getattr(before, name) for name in ("sent", "failed", "returned", "complained")}
    assert (before + after).since(base) == after


def test_an_account_recovers_when_it_is_clearly_below_its_threshold() -> None:
    assert not judged(Tally(sent=1_000, returned=45), EMAIL).recovered
    assert judged(Tally(sent=1_000, returned=40), EMAIL).recovered
