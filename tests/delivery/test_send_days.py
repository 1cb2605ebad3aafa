import pytest

from delivery.window import day_names


@pytest.mark.parametrize(
    ("bits", "words"), [(127, "Every day"), (0b11111, "Mon, Tue, Wed, Thu, Fri"), (0b1000000, "Sun"), (0, "")]
)
def test_days_read_as_words(bits: int, words: str) -> None:
    assert day_names(bits) == words
