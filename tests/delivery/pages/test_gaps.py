"""The gap between messages, as the page of an account shows it."""

import pytest

from delivery.pages.account_facts import _gap


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (None, None, ""),
        (None, 5, "0 to 5 s"),
        (2, 10, "2 to 10 s"),
        (60, 60, "60 s"),
        (90, 300, "90 to 300 s"),
        (120, 120, "2 min"),
        (360, 1200, "6 to 20 min"),
        (150, 300, "2.5 to 5 min"),
    ],
)
def test_a_long_gap_is_shown_in_minutes(low: float | None, high: float | None, words: str) -> None:
    assert _gap(low, high) == words
