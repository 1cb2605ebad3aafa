import pytest
from hypothesis import given
from hypothesis import strategies as st

from reminders.likeness.measure import alike, largest_group, shingles, with_values

LONG = (
    "the water in your street is turned off on friday from nine in the morning to eleven because of work at "
    "the main pipe please keep some water in bottles and do not use the washing machine before noon"
)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (LONG, LONG, True),
        (f"Hi, {LONG}", f"Hello, {LONG}", True),
        (f"{LONG} Thank you.", f"{LONG.upper()}!", True),
        (LONG, LONG.replace("friday", "monday"), True),
        (LONG, " ".join(reversed(LONG.split())), False),
        ("Hi Ada", "Hi Ada", True),
        ("Hi Ada", "Good morning, Ada", False),
        ("", "", True),
        ("", "Hi", False),
    ],
)
def test_texts_are_alike_that_share_most_sequences_of_words(one: str, other: str, same: bool) -> None:
    assert alike(shingles(one), shingles(other)) is same


def test_the_largest_group_is_counted_with_its_repeats() -> None:
    texts = [LONG] * 5 + [f"Hi, {LONG}"] * 3 + ["something else entirely, for once"] * 4
    assert largest_group(texts) == 8
    assert largest_group([]) == 0


@given(st.lists(st.text(max_size=60), min_size=1, max_size=30))
def test_a_group_has_at_least_one_text_and_at_most_all(texts: list[str]) -> None:
    found = largest_group(texts)
    assert max(map(texts.count, texts)) <= found <= len(texts)


@given(st.text(max_size=80))
def test_a_text_is_like_itself(text: str) -> None:
    assert alike(shingles(text), shingles(text))


def test_a_short_value_makes_no_other_text_and_a_long_one_does() -> None:
    ada = with_values("Hi {{ name }}: {{ story }}", {"name": "Ada", "story": "one two three four five six"})
    assert ada == "Hi {{ name }}: one two three four five six"
