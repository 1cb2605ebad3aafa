"""CSV downloads that begin at once, use little memory, and are safe to open in a spreadsheet."""

import csv
import re
from collections.abc import AsyncIterator, Iterable, Iterator
from itertools import islice

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, StreamingHttpResponse
from django.utils import timezone

PLAIN_NUMBER = re.compile(r"[+-]?[\d.,]+")
BOM = "\ufeff"  # or Excel takes UTF-8 for something else
LINES = 500

Line = Iterable[object]


def csv_response(request: HttpRequest, lines: Iterable[Line], filename: str) -> StreamingHttpResponse:
    """Return a download of `lines`, titles first."""
    chunks = _chunks(iter(lines))
    # An ASGI server would read a plain iterator to its end before it sends anything.
    content = _one_by_one(chunks) if isinstance(request, ASGIRequest) else chunks
    response = StreamingHttpResponse(content, content_type="text/csv; charset=utf-8")
    name = f"{filename}-{timezone.localtime():%Y-%m-%d}.csv"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def cell(value: object) -> str:
    """Return the value as text that no spreadsheet takes for a formula. Numbers stay, also with a plus."""
    text = str(value)
    if text.startswith(("=", "+", "-", "@", "\t", "\r")) and not PLAIN_NUMBER.fullmatch(text):
        return f"'{text}"
    return text


class _Echo:
    """The target of a CSV writer: `write` returns each line."""

    def write(self, text: str) -> str:
        return text


def _chunks(lines: Iterator[Line]) -> Iterator[str]:
    writer = csv.writer(_Echo())
    yield BOM
    while some := list(islice(lines, LINES)):
        yield "".join(writer.writerow([cell(value) for value in line]) for line in some)


async def _one_by_one(chunks: Iterator[str]) -> AsyncIterator[str]:
    following = sync_to_async(lambda: next(chunks, None))
    while (chunk := await following()) is not None:
        yield chunk


def streamed(
    request: HttpRequest, pieces: Iterator[bytes], *, content_type: str, disposition: str
) -> StreamingHttpResponse:
    """Return a response that sends each piece as it is made: under ASGI Django would collect an iterator first."""
    body = _each(pieces) if isinstance(request, ASGIRequest) else pieces
    response = StreamingHttpResponse(body, content_type=content_type)
    response["Content-Disposition"] = disposition
    response["X-Content-Type-Options"] = "nosniff"
    return response


async def _each(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    following = sync_to_async(lambda: next(pieces, None))
    while (piece := await following()) is not None:
        yield piece
