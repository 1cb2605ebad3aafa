"""Prints for people and for programs. Texts of strangers cannot move the cursor or colour the terminal."""

import json
import sys
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

LONGEST_CELL = 60


def say(text: str = "") -> None:
    """Print a text for a person."""
    sys.stdout.write(f"{plain(text)}\n")


def say_json(value: Any) -> None:
    """Print a value for a program, on one line."""
    sys.stdout.write(f"{json.dumps(value, ensure_ascii=False)}\n")


def complain(text: str) -> None:
    """Print a text where errors go."""
    sys.stderr.write(f"{plain(text)}\n")


def plain(text: str) -> str:
    """Return the text without characters that steer a terminal or change the direction of writing."""
    return "".join(
        character
        for character in text
        if character in "\n\t" or unicodedata.category(character) not in {"Cc", "Cf"}
    )


def table(rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str], *, none: str) -> None:
    """Print rows below each other; `columns` has the title of each column by its name."""
    if not rows:
        say(none)
        return
    cells = [[cell(row.get(name)) for name in columns] for row in rows]
    lines = [list(columns.values()), *cells]
    widths = [max(len(line[number]) for line in lines) for number in range(len(columns))]
    for line in lines:
        say("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())


def facts(row: Mapping[str, Any], names: Mapping[str, str]) -> None:
    """Print values of one row below each other, without those that are empty."""
    shown = {title: cell(row.get(name), longest=500) for name, title in names.items()}
    width = max(map(len, shown))
    for title, text in shown.items():
        if text:
            say(f"{title.ljust(width)}  {text}")


def cell(value: Any, *, longest: int = LONGEST_CELL) -> str:
    """Return a value as one line of text, times in the zone of this computer."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    text = " ".join(plain(when(str(value))).split())
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def when(text: str) -> str:
    """Return a moment of the API in the zone of this computer; any other text as it is."""
    if len(text) < 20 or not text[:4].isdecimal() or "T" not in text[:11]:
        return text
    try:
        return f"{datetime.fromisoformat(text).astimezone():%Y-%m-%d %H:%M}"
    except ValueError:
        return text
