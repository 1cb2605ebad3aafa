"""Docstrings begin with a verb or name their subject: a clause without a head has to be read twice."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
ROOMS = (
    *(
        "accounts",
        "activity",
        "api",
        "audit",
        "notices",
        "benchmarks",
        "client",
        "config",
        "delivery",
        "people",
        "queues",
        "reminders",
        "sandbox",
        "tests",
    ),
)
HEADLESS = re.compile(r"(Who|Whose|What|Whether|Nobody|Those)\b")
Named = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def modules() -> list[Path]:
    return sorted(each for room in ROOMS for each in (PROJECT / room).rglob("*.py"))


def headless(text: str) -> Iterator[str]:
    """Yield the docstrings of a module that begin like a clause."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, Named) and HEADLESS.match(said := ast.get_docstring(node) or ""):
            yield said.splitlines()[0]


def test_no_docstring_begins_like_a_clause() -> None:
    found = [
        f"{path.relative_to(PROJECT)}: {each}" for path in modules() for each in headless(path.read_text())
    ]
    assert found == []


@pytest.mark.parametrize("first", ["Who was never to get it.", "What became of it.", "Those of one account."])
def test_one_that_does_is_found(first: str) -> None:
    assert list(headless(f'def work() -> None:\n    """{first}"""\n')) == [first]


@pytest.mark.parametrize("first", ["Return what became of it.", "Whosoever is a name.", "The result."])
def test_one_that_names_its_subject_passes(first: str) -> None:
    assert list(headless(f'"""{first}"""\n')) == []
