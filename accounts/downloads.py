"""Downloads that begin at once and use little memory; CSV among them is safe to open in a spreadsheet."""

import csv
import re
from collections.abc import AsyncIterator, Iterable, Iterator
from datetime import datetime
from itertools import islice

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, StreamingHttpResponse
from django.utils import timezone
from django.utils.http import content_disposition_header

PLAIN_NUMBER = re.compile(r"[+-]?[\d.,]+")
BOM = "\ufeff"  # or Excel takes UTF-8 for something else
LINES = 500

Line = Iterable[object]


def streamed(
    request: HttpRequest, pieces: Iterator[bytes], *, content_type: str, disposition: str
) -> StreamingHttpResponse:
    """Return a response that sends each piece as it is made: under ASGI Django would collect an iterator first."""
    body = _one_by_one(pieces) if isinstance(request, ASGIRequest) else pieces
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


async def _one_by_one(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    following = sync_to_async(lambda: next(pieces, None))
    while (piece := await following()) is not None:
        yield piece
