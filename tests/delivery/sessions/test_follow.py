"""The status that an account gets from what its service says."""

import pytest

from delivery.sessions.follow import ASKED, HEARD, follows
from delivery.states import ACCOUNT_MOVES, AccountStatus, may_move
from delivery.transports.base import AccountState


@pytest.mark.parametrize("moves", [HEARD, ASKED])
def test_every_move_is_legal(moves: object) -> None:
    assert isinstance(moves, dict)
    for made in moves.values():
        for old, new in made.items():
            assert may_move(ACCOUNT_MOVES, old, new)


@pytest.mark.parametrize(
    ("status", "state", "expected"),
    [
        ("pairing", "working", "active"),
        ("offline", "working", "active"),
        ("paused", "working", "paused"),  # a person's pause is lifted by a person
        ("flagged", "working", "flagged"),  # somebody has to look at why
        ("active", "pairing", "flagged"),  # logged out on the phone
        ("active", "stopped", "offline"),
        ("paused", "stopped", "paused"),
        ("pairing", "stopped", "unpaired"),  # the codes ran out
        ("paused", "blocked", "flagged"),
        ("active", "starting", "active"),  # it reconnects by itself
        ("pairing", "starting", "pairing"),  # its code is on its way
        ("unpaired", "starting", "unpaired"),
        ("active", "unreachable", "active"),  # says nothing about the account
    ],
)
def test_what_is_heard(status: str, state: str, expected: str) -> None:
    assert follows(AccountStatus(status), AccountState(state)) == expected


@pytest.mark.parametrize(
    ("status", "state", "expected"),
    [
        ("flagged", "working", "active"),
        ("flagged", "pairing", "pairing"),
        ("active", "pairing", "pairing"),
        ("unpaired", "pairing", "pairing"),
        ("unpaired", "starting", "pairing"),
        ("active", "starting", "active"),
        ("paused", "working", "paused"),
    ],
)
def test_what_a_person_asked_for(status: str, state: str, expected: str) -> None:
    assert follows(AccountStatus(status), AccountState(state), asked=True) == expected
