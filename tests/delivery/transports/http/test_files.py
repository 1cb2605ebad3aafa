"""Files leave in pieces, and arrive whole."""

import base64
import io
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from yarl import URL

from delivery.outcomes import Rejected
from delivery.transports.http.files import PIECE, json_request_with_file, opened
from tests.delivery.transports.harness import photo

URL_ = URL("http://gateway.test/send")


class Disk(io.BytesIO):
    """Gives at most `most` bytes at a time, as some storages do, and remembers how many were asked for."""

    def __init__(self, content: bytes, most: int) -> None:
        super().__init__(content)
        self.most = most
        self.asked = 0

    def read(self, size: int | None = -1) -> bytes:
        assert size is not None
        assert size > 0, "the whole file at once"
        self.asked = max(self.asked, size)
        return super().read(min(size, self.most))


async def sent(file: io.BytesIO, words: str = "Hi") -> tuple[dict[str, Any], int, int]:
    """The payload that arrives, its length, and the length that was announced."""
    request = json_request_with_file(
        URL_, headers={}, payload=lambda content: {"text": words, "file": {"data": content}}, file=file
    )
    assert isinstance(request.body, AsyncIterator)
    body = b"".join([piece async for piece in request.body])
    return json.loads(body), len(body), int(request.headers["Content-Length"])


@pytest.mark.parametrize("length", [0, 1, 2, 3, 4, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE + 5])
async def test_a_file_arrives_whole_whatever_its_length(length: int) -> None:
    content = bytes(number % 251 for number in range(length))
    payload, written, announced = await sent(Disk(content, PIECE))
    assert base64.b64decode(payload["file"]["data"], validate=True) == content
    assert written == announced


async def test_no_file_is_ever_whole_in_memory() -> None:
    disk = Disk(bytes(5 * PIECE), PIECE)
    await sent(disk)
    assert disk.asked == PIECE


@settings(max_examples=60, deadline=None)
@given(content=st.binary(max_size=50), most=st.integers(1, 7), words=st.text(max_size=20))
async def test_any_words_and_any_pieces_make_one_payload(content: bytes, most: int, words: str) -> None:
    payload, written, announced = await sent(Disk(content, most), words)
    assert payload["text"] == words
    assert base64.b64decode(payload["file"]["data"]) == content
    assert written == announced


async def test_a_file_that_is_too_large_is_named_with_the_limit() -> None:
    file = io.BytesIO(bytes(2_000_001))
    outcome = await opened(replace(photo(), open=lambda: file), most_bytes=2_000_000)
    assert outcome == Rejected(reason="the file Fête été.png is larger than 2 MB", code="media_too_large")
    assert file.closed
