from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delivery.wordings import Choice, as_plain, cut, draw, has_choices, longest, shortest, variant_of, why_not

ANY_TEXT = st.text(alphabet="ab {}|\\n.", max_size=40)


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("Hello", ["Hello"]),
        ("{Hi|Hello} Ada", [Choice(options=["Hi", "Hello"]), " Ada"]),
        ("{a|b|c}", [Choice(options=["a", "b", "c"])]),
        ("{|very }good", [Choice(options=["", "very "]), "good"]),
        ("{Hi {{ name }}|Hello}", [Choice(options=["Hi {{ name }}", "Hello"])]),
        ("{{{name}}|you}", [Choice(options=["{{name}}", "you"])]),
        ("{you|{{name}}}", [Choice(options=["you", "{{name}}"])]),
        # No choices:
        ("{{ name }}", ["{{ name }}"]),
        ("{{ name|title }}", ["{{ name|title }}"]),
        ("{ a }", ["{ a }"]),
        ("{a|b", ["{a|b"]),
        ("a|b}", ["a|b}"]),
        ("C:\\dir", ["C:\\dir"]),
        ("\\{a|b}", ["{a|b}"]),
    ],
)
def test_a_choice_is_a_bar_between_single_braces(text: str, pieces: list[str | Choice]) -> None:
    assert cut(text) == pieces


# Frozen: results of past runs are counted by these numbers.
@pytest.mark.parametrize(
    ("key", "variant", "text"),
    [
        ("0b0c-1", 2, "C"),
        ("0b0c-2", 0, "A: y 2"),
        ("0b0c-3", 0, "A: x 1"),
        ("0b0c-4", 0, "A: x 1"),
        ("0b0c-5", 2, "C"),
    ],
)
def test_what_a_key_draws_never_changes(key: str, variant: int, text: str) -> None:
    wordings = ["A: {x|y} {1|2|3}", "B", "C"]
    assert variant_of(3, key=key) == variant
    assert draw(wordings, key=key, part=0) == text


def test_every_wording_and_every_option_is_drawn_about_as_often() -> None:
    drawn = Counter(draw(["A {1|2}", "B {1|2}"], key=f"run-{n}", part=0) for n in range(4_000))
    assert set(drawn) == {"A 1", "A 2", "B 1", "B 2"}
    assert min(drawn.values()) > 850


def test_one_wording_is_no_variant() -> None:
    assert variant_of(1, key="k") is None
    assert variant_of(0, key="k") is None


@given(st.lists(ANY_TEXT, min_size=1, max_size=5), st.text(max_size=10), st.integers(0, 9))
def test_the_same_key_always_says_the_same(wordings: list[str], key: str, part: int) -> None:
    first = draw(wordings, key=key, part=part)
    assert draw(list(wordings), key=key, part=part) == first
    assert len(first) <= max(len(longest(text)) for text in wordings)
    assert len(first) >= min(len(shortest(text)) for text in wordings)


@given(ANY_TEXT)
def test_any_text_can_be_written_so_that_it_is_sent_as_it_stands(text: str) -> None:
    assert draw([as_plain(text)], key="k", part=0) == text


@given(ANY_TEXT)
def test_without_choices_a_text_is_sent_as_it_stands(text: str) -> None:
    if not has_choices(text):
        assert draw([text], key="k", part=0) == text


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("{|Hello}", "leave the text empty"),
        ("{a| } {|b}", "leave the text empty"),
        ("{a|{b|c}}", "inside another choice"),
        ("{a|{b|c} d} e", "inside another choice"),
    ],
)
def test_a_wording_that_cannot_be_sent_says_why(text: str, part: str) -> None:
    assert part in why_not(text)


@pytest.mark.parametrize("text", ["", "Hello", "{a|b} c", "\\{a|{b|c}", "{ {a|b} }", "{{ x|y }}"])
def test_other_wordings_are_fine(text: str) -> None:
    assert why_not(text) == ""


@pytest.mark.parametrize("text", ["{" * 20_000, "{a|" * 7_000, "{a|{{ b" * 2_800, "{a" + "|a" * 9_900])
def test_a_long_text_of_braces_is_read_in_one_pass(text: str) -> None:
    assert "".join(piece if isinstance(piece, str) else "" for piece in cut(text)) == text
