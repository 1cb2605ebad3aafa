"""The checks that the small services apply must be able to fail."""

import re
from typing import Any

import pytest

from tests.delivery.transports.shapes import Maybe, misfits

SHAPE = {
    "to": re.compile(r"[0-9]+"),
    "kind": frozenset({"text", "image"}),
    "preview": bool,
    "count": Maybe(int),
    "tags": Maybe([str]),
    "file": Maybe({"name": str}),
}
GOOD: dict[str, Any] = {"to": "49", "kind": "text", "preview": True}


@pytest.mark.parametrize("more", [{}, {"count": 1}, {"tags": []}, {"tags": ["a"]}, {"file": {"name": "a"}}])
def test_what_fits_has_no_fault(more: dict[str, Any]) -> None:
    assert misfits(GOOD | more, SHAPE) == []


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        ({"to": "+49"}, "body.to does not match [0-9]+"),
        ({"to": 49}, "body.to does not match [0-9]+"),
        ({"kind": "sound"}, "body.kind is none of ['image', 'text']"),
        ({"kind": ["text"]}, "body.kind is none of ['image', 'text']"),
        ({"preview": 1}, "body.preview is no bool"),
        ({"count": True}, "body.count is no int"),
        ({"tags": "a"}, "body.tags is no list"),
        ({"tags": ["a", None]}, "body.tags[1] is no str"),
        ({"file": None}, "body.file is no object"),
        ({"file": {}}, "body.file.name is missing"),
        ({"caption": ""}, "body.caption is not known"),
    ],
)
def test_what_does_not_fit_is_named(change: dict[str, Any], wrong: str) -> None:
    assert misfits(GOOD | change, SHAPE) == [wrong]


def test_what_is_missing_is_named() -> None:
    assert misfits({"to": "49", "kind": "text"}, SHAPE) == ["body.preview is missing"]
