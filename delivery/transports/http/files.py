"""Sends files: read from the disk piece by piece, so that a file is never whole in memory."""

import asyncio
import base64
import json
import os
import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, BinaryIO

import aiohttp
from yarl import URL

from delivery.outcomes import Rejected, TryAgain
from delivery.transports.base import Media
from delivery.transports.http.exchange import Request
from delivery.transports.leaving import keep_back

PIECE = 2**18


async def opened(media: Media, *, most_bytes: int) -> BinaryIO | Rejected | TryAgain:
    """Open the file, or return why it cannot be sent.

    A folder may vanish in the middle of a run, and come back. This is a fault of the installation, not of the recipient
    or the service: the engine holds such a message back, and looks for the file before it begins the next one.
    """
    try:
        file = await asyncio.to_thread(media.open)
    except OSError as error:
        keep_back(f"the file {media.filename} cannot be read", cause=error)
        if not isinstance(error, FileNotFoundError):
            return TryAgain(reason=f"the file {media.filename} cannot be read")
        return Rejected(reason=f"the file {media.filename} no longer exists", code="media_missing")
    if size(file) <= most_bytes:
        return file
    file.close()
    most = f"{most_bytes // 10**6} MB"
    return Rejected(reason=f"the file {media.filename} is larger than {most}", code="media_too_large")


def size(file: BinaryIO) -> int:
    end = file.seek(0, os.SEEK_END)
    file.seek(0)
    return end


def form_request(
    url: URL, *, headers: Mapping[str, str], fields: Mapping[str, str], media: Media, file: BinaryIO
) -> Request:
    """Return a POST of a form with the file in its field `file`."""
    # Names as browsers write them, in UTF-8: services do not decode percent signs.
    form = aiohttp.FormData(quote_fields=False)
    for name, value in fields.items():
        form.add_field(name, value)
    form.add_field("file", file, filename=media.filename, content_type=media.content_type)
    return Request(method="POST", url=url, headers=headers, body=form)


def json_request_with_file(
    url: URL, *, headers: Mapping[str, str], payload: Callable[[str], Mapping[str, Any]], file: BinaryIO
) -> Request:
    """Return a POST of `payload(content)`, where `content` stands for the file in base64."""
    hole = secrets.token_hex(16)  # cannot be guessed, so no message can hold it
    before, after = json.dumps(payload(hole)).encode().split(hole.encode())
    length = len(before) + -(-size(file) // 3) * 4 + len(after)
    headers = {**headers, "Content-Type": "application/json", "Content-Length": str(length)}
    return Request(method="POST", url=url, headers=headers, body=_pieces(before, file, after))


async def _pieces(before: bytes, file: BinaryIO, after: bytes) -> AsyncIterator[bytes]:
    yield before
    rest = b""
    while piece := await asyncio.to_thread(file.read, PIECE):
        # Three bytes make four characters: what is left of a piece waits for the next.
        whole = rest + piece
        rest = whole[len(whole) - len(whole) % 3 :]
        yield base64.b64encode(whole[: len(whole) - len(rest)])
    yield base64.b64encode(rest) + after
