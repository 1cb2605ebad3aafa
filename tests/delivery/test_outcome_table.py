"""docs/lifecycle.md and `retry.decide` say the same, row by row."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, get_args

import pytest

from delivery.outcomes import (
    FIRST_CONTACTS_LOCKED,
    AccountBlocked,
    HeldBack,
    NotConnected,
    Outcome,
    RateLimited,
    Rejected,
    Sent,
    ServerError,
    TryAgain,
    Unknown,
    Unreachable,
)
from delivery.retry import RetryRules, Verdict, decide
from tests.config.programs import PROJECT

HEAD = "| outcome | cause | target | attempt | target waits | account | account waits |"
RULES = RetryRules()
OUTCOMES: Mapping[str, Outcome] = {
    "Sent": Sent(),
    "RateLimited": RateLimited(),
    "NotConnected": NotConnected(),
    "Unreachable": Unreachable(reason="connection refused"),
    "ServerError": ServerError(reason="500"),
    "TryAgain": TryAgain(reason="greylisted"),
    "Rejected": Rejected(reason="no such user"),
    "AccountBlocked": AccountBlocked(reason="banned"),
    "HeldBack": HeldBack(reason="stood still"),
    "Unknown": Unknown(reason="cut off"),
}
# What the words of the first two columns mean.
OF_OUTCOME: Mapping[str, Mapping[str, Any]] = {
    "asks for 90 s": {"after": 90.0},
    "for everybody": {"everybody": True},
    "new chats locked": {"code": FIRST_CONTACTS_LOCKED},
}
CIRCUMSTANCES: Mapping[str, Mapping[str, Any]] = {
    "second": {"attempt": 2},
    "third in a row": {"streak": 3},
    "fifth in a row": {"streak": 5},
    "last attempt": {"attempt": RULES.max_attempts},
    "last attempt of a day": {"attempt": len(RULES.recipient_waits) + 1},
    "for an hour": {"lasted": 3600.0},
    "others fail too": {"shared": True},
    "with a key": {"idempotent": True},
}


def rows() -> list[list[str]]:
    """The cells of the table, row by row."""
    text = (PROJECT / "docs" / "lifecycle.md").read_text()
    lines = text[text.index(HEAD) :].splitlines()[2:]
    table = lines[: next(number for number, line in enumerate(lines) if not line.startswith("|"))]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table]


def verdict_of(told: str, cause: str) -> Verdict:
    """Return what the code decides in the case that a row describes."""
    name = re.match(r"`(\w+)`", told)
    assert name is not None
    words = [*re.split(r"`,? ?|, ", told), *cause.split(", ")]
    changes = {key: value for word in words for key, value in OF_OUTCOME.get(word, {}).items()}
    asked = {key: value for word in words for key, value in CIRCUMSTANCES.get(word, {}).items()}
    outcome = replace(OUTCOMES[name[1]], **changes) if changes else OUTCOMES[name[1]]
    return decide(outcome, rules=RULES, **{"attempt": 1, "idempotent": False} | asked)


@pytest.mark.parametrize("row", rows(), ids=lambda row: f"{row[0]} {row[1]}")
def test_the_table_says_what_the_code_does(row: list[str]) -> None:
    verdict = verdict_of(row[0], row[1])
    assert row[2:] == [
        f"`{verdict.target}`",
        "counts" if verdict.counts else "no",
        f"{verdict.retry_after:g} s" if verdict.retry_after else "",
        str(verdict.effect),
        f"{verdict.hold:g} s" if verdict.hold else "",
    ]


def test_every_word_of_the_table_is_understood() -> None:
    known = {*OF_OUTCOME, *CIRCUMSTANCES, "without a key", "first", "none", "in doubt", "this process"}
    causes = {"the account", "the gateway", "the service", "this message", "the recipient"}
    words = {
        word
        for row in rows()
        for cell in (re.sub(r"^`\w+`,? ?", "", row[0]), row[1])
        for word in cell.split(", ")
    }
    assert words - {""} <= known | causes


def test_the_table_has_every_outcome() -> None:
    named = {row[0].split("`")[1] for row in rows()}
    assert named == {kind.__name__ for kind in get_args(Outcome)}
