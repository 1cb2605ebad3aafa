"""JSON from browsers: read, or refused with a ValueError, whatever it is."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.web.json_bodies import MOST_BYTES, read_json


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff",
        b'"\\u0000"',
        b'{"a\\u0000": 1}',
        b'{"a": ["\\ud800"]}',
        b"[" * 60_000,
        b"[" * 20_000 + b"]" * 20_000,
        b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
        b"1" * 5_000,
        b'"' + b"x" * MOST_BYTES + b'"',
    ],
)
def test_what_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the json module's own sentences are among them
        read_json(body)


@pytest.mark.parametrize(("body", "value"), [(b'{"a": [1, "\xc3\xa4"]}', {"a": [1, "ä"]}), (b"null", None)])
def test_what_is_read(body: bytes, value: object) -> None:
    assert read_json(body) == value


def test_an_escaped_backslash_before_zeros_is_no_nul() -> None:
    assert read_json(rb'"\\u00001"') == "\\u00001"


@given(st.binary(max_size=200))
def test_nothing_else_is_ever_raised(body: bytes) -> None:
    with suppress(ValueError):
        read_json(body)
