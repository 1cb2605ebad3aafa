"""A message that is nothing but a stop word."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reminders.conversations.stop_vocabulary import USUAL
from reminders.conversations.stop_words import is_stop, normal


@pytest.mark.parametrize(
    "text",
    [
        "STOP",
        "stop",
        " Stop. ",
        "“Stop”!!",
        "S\u200bTOP",
        "*STOP*",
        "\uff33\uff34\uff2f\uff30",
        "stop\n",
        "🛑 stop 🛑",
        "Stop, stop, STOP!!!",
        "Stop please.",
        "Unsubscribe me",
        "Arrêt",
        "ARRET",
        "desabonner",
        "Abmelden!",
        "baja",
        "Berhenti",
        "СТОП",
        "إلغاء الاشتراك",
        "退订",
        "रोकें",
    ],
)
def test_a_stop_word_is_known_however_it_is_written(text: str) -> None:
    assert is_stop(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  ",
        "!",
        "Please do not stop",
        "stop by on Monday",
        "The bus stop",
        "nonstop",
        "stops",
        "no",
        "weekend",
        "I will cancel the other one",
        "yes 👍",
    ],
)
def test_a_word_in_a_longer_sentence_or_another_word_is_none(text: str) -> None:
    assert not is_stop(text)


def test_words_of_the_setting_replace_the_usual_ones() -> None:
    assert is_stop("Schluss!", ["schluß"])
    assert not is_stop("stop", ["schluß"])


@given(
    st.sampled_from(USUAL),
    st.sampled_from([str.upper, str.title, str.lower]),
    st.text("!.,? \n*_-", max_size=4),
)
def test_case_and_punctuation_around_a_word_do_not_matter(word: str, case: object, around: str) -> None:
    assert callable(case)
    assert is_stop(f"{around}{case(word)}{around}")


@given(st.text(max_size=40))
@example("\N{MATHEMATICAL BOLD CAPITAL ALPHA}")
def test_what_is_normal_stays_as_it_is(text: str) -> None:
    assert normal(normal(text)) == normal(text)
