"""When a second person is needed, who that may be, and for how many recipients an approval holds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounts.approvals import rules

NUMBERS = st.none() | st.integers(min_value=0, max_value=10_000)


@pytest.mark.parametrize(
    ("numbers", "strictest"),
    [
        ((), None),
        ((None, None), None),
        ((0, None), None),  # the setting is off
        ((500, None), 500),
        ((500, 100), 100),
        ((100, 500), 100),  # an owner cannot be less strict than the installation
        ((0, 100), 100),
    ],
)
def test_the_strictest_number_holds(numbers: tuple[int | None, ...], strictest: int | None) -> None:
    assert rules.strictest(*numbers) == strictest


@pytest.mark.parametrize(
    ("recipients", "above", "marked", "needed"),
    [
        (100, None, (), False),
        (100, 100, (), False),
        (101, 100, (), True),
        (1, None, ("Office",), True),
        (1, 100, ("Office",), True),
    ],
)
def test_it_is_needed_above_the_number_and_for_marked_accounts(
    recipients: int, above: int | None, marked: tuple[str, ...], needed: bool
) -> None:
    assert bool(rules.why_needed(recipients, above=above, marked=marked)) is needed


def test_the_reason_names_the_number_or_the_account() -> None:
    assert "1,000 recipients" in rules.why_needed(1200, above=1000)
    assert "Office" in rules.why_needed(1, above=None, marked=["Office"])


@pytest.mark.parametrize(
    ("before", "after", "looser"),
    [
        (None, 10, False),
        (10, 5, False),
        (10, 10, False),
        (10, 11, True),
        (10, None, True),
        (None, None, False),
    ],
)
def test_a_higher_number_or_none_is_looser(before: int | None, after: int | None, looser: bool) -> None:
    assert rules.looser(before, after) is looser


@pytest.mark.parametrize(
    ("person", "asked_by", "edited_by", "may"),
    [(1, 2, 3, True), (1, 1, 3, False), (1, 2, 1, False), (1, None, None, True)],
)
def test_nobody_approves_their_own(
    person: int, asked_by: int | None, edited_by: int | None, may: bool
) -> None:
    assert (not rules.why_not(person, asked_by=asked_by, edited_by=edited_by)) is may


@given(number=st.integers(min_value=0, max_value=10_000_000))
def test_an_approval_covers_what_was_shown_and_at_most_a_tenth_more(number: int) -> None:
    assert number <= rules.covers(number) <= number * 1.1


@given(first=NUMBERS, second=NUMBERS, count=st.integers(min_value=0, max_value=20_000))
def test_no_other_number_makes_it_less_strict(first: int | None, second: int | None, count: int) -> None:
    alone = rules.why_needed(count, above=rules.strictest(first))
    together = rules.why_needed(count, above=rules.strictest(first, second))
    assert bool(together) >= bool(alone)
