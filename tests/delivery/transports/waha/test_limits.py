"""WAHA's answers about WhatsApp's own limits are read whatever its engines make of them."""

from datetime import UTC, datetime
from typing import Any

import pytest

from delivery.transports.waha.limits import read

UNTIL = datetime(2026, 12, 9, 8, tzinfo=UTC)
SECONDS = int(UNTIL.timestamp())


@pytest.mark.parametrize(
    "end", [SECONDS, SECONDS * 1000, str(SECONDS), UNTIL.isoformat(), "2026-12-09T08:00:00"]
)
def test_a_quota_is_read_with_its_end_in_any_form(end: object) -> None:
    told = {"cappingStatus": "FIRST_WARNING", "totalQuota": 40, "usedQuota": 31, "cycleEnd": end}
    found = read(told, None)
    assert (found.new_chats, found.new_chats_used, found.new_chats_until) == (40, 31, UNTIL)
    assert found.said == {"capping": told}


@pytest.mark.parametrize(
    "told",
    [
        None,
        {},
        [],
        "no",
        {"totalQuota": -1, "usedQuota": 3, "cappingStatus": "NONE"},
        {"totalQuota": None},
        {"totalQuota": True},
        {"totalQuota": "many"},
        {"totalQuota": "9" * 5000, "usedQuota": "9" * 5000, "cycleEnd": "9" * 5000},
    ],
)
def test_no_quota_is_none(told: Any) -> None:
    assert read(told, None).new_chats is None


def test_an_account_that_is_capped_has_nothing_left_whatever_the_numbers() -> None:
    for told in ({"totalQuota": 40, "usedQuota": 12}, {"totalQuota": -1}, {}):
        found = read({"cappingStatus": "CAPPED", **told}, None)
        assert found.new_chats is not None
        assert found.new_chats_used >= found.new_chats


@pytest.mark.parametrize(
    ("told", "locked", "until"),
    [
        (None, False, None),
        ({}, False, None),
        ({"isActive": False, "timeEnforcementEnds": None}, False, None),
        ({"isActive": True, "timeEnforcementEnds": SECONDS}, True, UNTIL),
        ({"reachoutTimelock": {"is_active": True, "expiresAt": UNTIL.isoformat()}}, True, UNTIL),
        ({"until": SECONDS * 1000}, True, UNTIL),
        ({"locked": True}, True, None),
        ({"isActive": False, "ends": SECONDS}, False, UNTIL),
        ({"ends": "soon", "until": 0, "expires": True, "end": 1e300}, False, None),
    ],
)
def test_a_lock_is_read_from_fields_whose_names_are_not_known(
    told: Any, locked: bool, until: datetime | None
) -> None:
    found = read(None, told)
    assert (found.locked, found.locked_until) == (locked, until)
