"""Downloads that begin at once and use little memory; CSV among them is safe to open in a spreadsheet.

A download of a long list keeps a database connection for its whole time. So a few are under way at once, fewer of one
person; the others wait, without a thread or a connection.
"""

import asyncio
import csv
import re
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from datetime import datetime
from functools import cache
from itertools import islice

from asgiref.sync import sync_to_async
from django.conf import settings
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, StreamingHttpResponse
from django.utils import timezone
from django.utils.http import content_disposition_header

from config.shares import Shares

PLAIN_NUMBER = re.compile(r"[+-]?[\d.,]+")
BOM = "\ufeff"  # or Excel takes UTF-8 for something else
LINES = 500
LOOK_AGAIN = 0.2  # seconds until a download that waits looks for a place again

Line = Iterable[object]


@cache
def places() -> Shares:
    """Return the places for downloads of lists, of this process: each keeps a database connection."""
    return Shares(total=max(2, settings.DATABASE_POOL // 4), each=max(1, settings.DATABASE_POOL // 10))


def streamed(
    request: HttpRequest, pieces: Iterator[bytes], *, content_type: str, disposition: str, waits: bool = False
) -> StreamingHttpResponse:
    """Return a response that sends each piece as it is made: under ASGI Django would collect an iterator first.

    With `waits` it begins once its person has a place.
    """
    body: AsyncIterable[bytes] | Iterator[bytes] = pieces
    if isinstance(request, ASGIRequest):
        body = InTurn(request, _one_by_one(pieces)) if waits else _one_by_one(pieces)
    response = StreamingHttpResponse(body, content_type=content_type)
    response["Content-Disposition"] = disposition
    response["X-Content-Type-Options"] = "nosniff"
    return response


def csv_response(request: HttpRequest, lines: Iterable[Line], filename: str) -> StreamingHttpResponse:
    """Return a download of `lines`, titles first; the day is added to the name of the file."""
    name = f"{filename}-{timezone.localtime():%Y-%m-%d}.csv"
    return streamed(
        request,
        _chunks(iter(lines)),
        content_type="text/csv; charset=utf-8",
        disposition=content_disposition_header(True, name) or "attachment",
        waits=True,
    )


def cell(value: object) -> str:
    """Return the value as text that no spreadsheet takes for a formula. Numbers stay, also with a plus."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.isoformat(timespec="seconds")
    text = str(value)
    if text.startswith(("=", "+", "-", "@", "\t", "\r")) and not PLAIN_NUMBER.fullmatch(text):
        return f"'{text}"
    return text


class _Echo:
    """The target of a CSV writer: `write` returns each line."""

    def write(self, text: str) -> str:
        return text


def _chunks(lines: Iterator[Line]) -> Iterator[bytes]:
    writer = csv.writer(_Echo())
    yield BOM.encode()
    while some := list(islice(lines, LINES)):
        yield "".join(writer.writerow([cell(value) for value in line]) for line in some).encode()


class InTurn:
    """The pieces of a download, once its person has a place.

    A place is taken when the sending begins, since a response may never be sent. It is given back at the end, after an
    error, or when Django closes the response because the browser has gone.
    """

    def __init__(self, request: HttpRequest, pieces: AsyncIterator[bytes]) -> None:
        self._person = getattr(getattr(request, "user", None), "pk", None)
        self._pieces = pieces
        self._holds = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while places().take(self._person):  # noqa: ASYNC110 - whoever gives a place back knows no event loop
            await asyncio.sleep(LOOK_AGAIN)
        self._holds = True
        try:
            async for piece in self._pieces:
                yield piece
        finally:
            self.close()

    def close(self) -> None:
        """Give the place back, unless that is done."""
        if self._holds:
            self._holds = False
            places().give_back(self._person)


async def _one_by_one(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    following = sync_to_async(lambda: next(pieces, None))
    while (piece := await following()) is not None:
        yield piece
