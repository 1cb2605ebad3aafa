"""Draws the wording of a text for one target: one of several wordings, and in it one of the options of each choice.

A choice is written `{one|other}`; an option may hold variables, and may be empty. `{{ name }}` is a variable, and
braces without a `|` between them are plain text. A backslash in front (`\\{one|other}`) makes a choice plain text.

What is drawn depends on the key of the target alone, so a retry and a second send say the same. The numbers must
never change: results are counted by them after a run (`delivery/wording_results.py`), also after an update.
"""

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

VARIABLE = re.compile(r"{{\s*([\w.-]+)\s*}}")
OPTION = r"(?:{{\s*[\w.-]+\s*}}|[^{}|])*+"
CHOICE = re.compile(rf"(?P<plain>\\)?(?<!{{){{(?P<options>{OPTION}(?:\|{OPTION})++)}}")
# From left to right: the braces of a variable are not those of a choice.
TOKEN = re.compile(rf"{VARIABLE.pattern}|{CHOICE.pattern}")

LETTERS = "ABCDE"
MOST_WORDINGS = len(LETTERS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A choice of a text: its options as they are written."""

    options: Sequence[str]


def draw(wordings: Sequence[str], *, key: str, part: int) -> str:
    """Return the text for the target with this key, its variables not yet filled in."""
    place = variant_of(len(wordings), key=key) or 0
    count = 0

    def option(options: Sequence[str]) -> str:
        nonlocal count
        count += 1
        return options[_number(f"{key}-{part}-{count}") % len(options)]

    return _replaced(wordings[place], option)


def variant_of(count: int, *, key: str) -> int | None:
    """Return the place of the wording among `count` for this key; None where there is nothing to draw from."""
    return _number(key) % count if count > 1 else None


def cut(text: str) -> list[str | Choice]:
    """Return the text as plain pieces, which may hold variables, and choices."""
    pieces: list[str | Choice] = []
    end = 0
    for match in _choices(text):
        pieces.append(text[end : match.start()])
        pieces.append(match[0][1:] if match["plain"] else Choice(options=match["options"].split("|")))
        end = match.end()
    return [piece for piece in (*pieces, text[end:]) if piece != ""]


def has_choices(text: str) -> bool:
    """Return whether the text has a choice, or something that a backslash keeps from being one."""
    return next(_choices(text), None) is not None


def as_plain(text: str) -> str:
    """Return the wording that says exactly `text`: with a backslash in front of what would be a choice."""
    escaped, end = "", 0
    for match in _choices(text):
        escaped += text[end : match.start()] + "\\" + match[0]
        end = match.end()
    return escaped + text[end:]


def longest(text: str) -> str:
    """Return the text with the longest option of each choice."""
    return _replaced(text, lambda options: max(options, key=len))


def shortest(text: str) -> str:
    """Return the text with the shortest option of each choice."""
    return _replaced(text, lambda options: min(options, key=lambda option: len(option.strip())))


def why_not(text: str) -> str:
    """Return what is wrong with the choices of a wording, for people; empty if nothing is."""
    if has_choices(text) and not shortest(text).strip():
        return "Some options leave the text empty. Write something outside of the braces."
    if has_choices(_without_choices(text)):
        return (
            "A choice inside another choice is not possible. Write the options side by side: {one|two|three}."
        )
    return ""


def _choices(text: str) -> "filter[re.Match[str]]":
    return filter(lambda match: match["options"] is not None, TOKEN.finditer(text))


def _without_choices(text: str) -> str:
    """Return the text with a letter for each choice: a choice that is left had another one inside."""
    return TOKEN.sub(lambda match: "x" if match["options"] is not None else match[0], text)


def _replaced(text: str, option: Callable[[Sequence[str]], str]) -> str:
    return "".join(option(piece.options) if isinstance(piece, Choice) else piece for piece in cut(text))


def _number(words: str) -> int:
    """Return a number that these words always have; SQL computes the same in `delivery/wording_results.py`."""
    return int(hashlib.sha256(words.encode()).hexdigest()[:8], 16)
