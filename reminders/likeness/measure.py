"""Measures how alike texts are, by the sequences of three words that they share. Pure.

Two texts are alike where most of these sequences are in both: a greeting or one other word does not make a text
another one.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from delivery.wordings import VARIABLE

WORD = re.compile(r"\w+")
SEQUENCE = 3  # words
ALIKE = 0.7  # share of sequences that two texts have in common
MOST_WORDS = 300  # of a text that are looked at
MOST_TEXTS = 80  # different texts that are compared; the commonest ones
SHORT_VALUE = 5  # words: a longer value of a variable is a text of its own

Shingles = frozenset[tuple[str, ...]]


def largest_group(texts: Iterable[str]) -> int:
    """Return how many of the texts are like one of them, for the one that most are like."""
    commonest = Counter(map(shingles, texts)).most_common(MOST_TEXTS)
    return max(
        (sum(number for other, number in commonest if alike(one, other)) for one, _ in commonest), default=0
    )


def alike(one: Shingles, other: Shingles) -> bool:
    """Decide whether two texts share most of their sequences."""
    return len(one & other) >= ALIKE * len(one | other)


def shingles(text: str) -> Shingles:
    """Return the sequences of words in a text; of a text with few words, all of them together."""
    words = WORD.findall(text.casefold())[:MOST_WORDS]
    last = max(1, len(words) - SEQUENCE + 1)
    return frozenset(tuple(words[start : start + SEQUENCE]) for start in range(last))


def with_values(text: str, values: Mapping[str, object]) -> str:
    """Return the text with its long values filled in: a short one, such as a name, does not make it another text."""

    def value(match: re.Match[str]) -> str:
        filled = str(values.get(match[1]) or "")
        return filled if len(WORD.findall(filled)) > SHORT_VALUE else match[0]

    return VARIABLE.sub(value, text)
