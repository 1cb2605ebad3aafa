import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from delivery.states import (
    ACCOUNT_MOVES,
    OPEN_RUN,
    RUN_MOVES,
    SETTLED_RUN,
    SETTLED_TARGET,
    TARGET_MOVES,
    AccountStatus,
    RunStatus,
    TargetStatus,
    may_move,
)

# Written out once more, so that a change of a table has to be meant: from each state, to these.
LEGAL: dict[str, dict[str, str]] = {
    "Run": {
        "queued": "running paused success partial failed canceled",
        "running": "queued paused success partial failed canceled",
        "paused": "queued running success partial failed canceled",
        "success": "",
        "partial": "queued running success failed",
        "failed": "queued running success partial",
        "canceled": "",
        "skipped": "",
    },
    "Target": {
        "pending": "sending skipped",
        "sending": "pending sent failed skipped unconfirmed",
        "sent": "",
        "failed": "pending",
        "skipped": "",
        "unconfirmed": "pending sent",
    },
    "Account": {
        "unpaired": "pairing active",
        "pairing": "unpaired active offline",
        "active": "unpaired pairing paused offline flagged",
        "paused": "unpaired pairing active offline flagged",
        "offline": "unpaired pairing active paused flagged",
        "flagged": "unpaired pairing active",
    },
}
TABLES: dict[str, tuple[type[StrEnum], Mapping[Any, frozenset[Any]]]] = {
    "Run": (RunStatus, RUN_MOVES),
    "Target": (TargetStatus, TARGET_MOVES),
    "Account": (AccountStatus, ACCOUNT_MOVES),
}
BORN = {"Run": {"queued", "skipped"}, "Target": {"pending"}, "Account": {"unpaired"}}
EVERY_PAIR = [
    (what, old, new) for what, (states, _) in TABLES.items() for old, new in product(states, repeat=2)
]
DRAWINGS = Path(__file__).parents[2] / "docs" / "lifecycle.md"


@pytest.mark.parametrize(("what", "old", "new"), EVERY_PAIR)
def test_a_move_is_legal_exactly_when_it_is_in_the_table(what: str, old: StrEnum, new: StrEnum) -> None:
    _, moves = TABLES[what]
    assert may_move(moves, old, new) == (old == new or new.value in LEGAL[what][old.value].split())


@pytest.mark.parametrize("what", TABLES)
def test_every_state_has_its_moves_and_none_moves_to_itself(what: str) -> None:
    states, moves = TABLES[what]
    assert set(moves) == set(states)
    assert all(state not in moves[state] for state in states)


@pytest.mark.parametrize("what", TABLES)
def test_every_state_can_be_reached(what: str) -> None:
    states, moves = TABLES[what]
    reached = {states(name) for name in BORN[what]}
    while new := {after for state in reached for after in moves[state]} - reached:
        reached |= new
    assert reached == set(states)


def test_a_run_is_either_open_or_settled() -> None:
    assert set(RunStatus) == OPEN_RUN | SETTLED_RUN
    assert not OPEN_RUN & SETTLED_RUN
    assert {"queued", "running", "paused"} == OPEN_RUN


@pytest.mark.parametrize("settled", sorted(SETTLED_RUN - {RunStatus.PARTIAL, RunStatus.FAILED}))
def test_a_run_without_failed_targets_to_retry_stays_settled(settled: RunStatus) -> None:
    assert not RUN_MOVES[settled]


@pytest.mark.parametrize("settled", [RunStatus.PARTIAL, RunStatus.FAILED])
def test_a_run_with_failed_targets_opens_again_but_is_never_paused_or_canceled(settled: RunStatus) -> None:
    moves = RUN_MOVES[settled]
    assert moves & OPEN_RUN == {RunStatus.QUEUED, RunStatus.RUNNING}
    assert not moves & {RunStatus.CANCELED, RunStatus.SKIPPED}


def test_what_was_sent_or_skipped_never_moves_again() -> None:
    assert not TARGET_MOVES[TargetStatus.SENT]
    assert not TARGET_MOVES[TargetStatus.SKIPPED]


def test_a_settled_target_is_only_sent_again_through_pending() -> None:
    for settled in SETTLED_TARGET:
        assert TargetStatus.SENDING not in TARGET_MOVES[settled]
    assert TARGET_MOVES[TargetStatus.FAILED] == {TargetStatus.PENDING}


def test_a_target_is_only_sent_from_sending_or_by_a_person() -> None:
    assert {old for old, new in TARGET_MOVES.items() if TargetStatus.SENT in new} == {
        TargetStatus.SENDING,
        TargetStatus.UNCONFIRMED,
    }


def test_a_flag_is_never_hidden_by_an_account_going_offline_or_being_paused() -> None:
    assert not ACCOUNT_MOVES[AccountStatus.FLAGGED] & {AccountStatus.OFFLINE, AccountStatus.PAUSED}


@pytest.mark.parametrize("what", TABLES)
def test_the_drawing_shows_exactly_the_legal_moves(what: str) -> None:
    drawing = re.search(
        rf"^## {what}$.*?```mermaid\n(.*?)```", DRAWINGS.read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    assert drawing
    arrows = set(drawn_arrows(drawing[1].splitlines()))
    _, moves = TABLES[what]
    assert {new for old, new in arrows if old == "[*]"} == BORN[what]
    assert {arrow for arrow in arrows if arrow[0] != "[*]"} == {
        (old.value, new.value) for old, after in moves.items() for new in after
    }


def drawn_arrows(lines: Iterable[str]) -> Iterable[tuple[str, str]]:
    """The arrows of a state diagram; one that leaves a box leaves each state in it."""
    boxes: dict[str, set[str]] = {}
    box = ""
    for line in lines:
        if opened := re.match(r"\s*state (\w+) {", line):
            box = opened[1]
            boxes[box] = set()
        elif line.strip() == "}":
            box = ""
        elif arrow := re.match(r"\s*(\S+) --> (\w+)", line):
            old, new = arrow.groups()
            if box:
                boxes[box] |= {old, new}
            yield from ((each, new) for each in boxes.get(old, {old}))
