"""Files: uploaded ones, by their handles, and those that come with a message, inside it or from their address.

The bytes of the latest are kept for the page to show.
"""

import asyncio
import base64
import binascii
import hashlib
from collections import OrderedDict
from dataclasses import dataclass

import aiohttp

MAX_UPLOAD_BYTES = 100 * 2**20
MAX_HANDLES = 100_000
MAX_KEPT_BYTES = 64 * 2**20  # of all content together
MAX_SHOWN_BYTES = 16 * 2**20  # larger files are known by name and size only
FETCH_TIMEOUT = aiohttp.ClientTimeout(total=60, connect=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    handle: str
    account: str
    filename: str
    content_type: str
    size: int


class Uploads:
    """The uploads. A handle works only for the account that uploaded it."""

    def __init__(self) -> None:
        self._uploads: OrderedDict[str, Upload] = OrderedDict()
        self._contents: OrderedDict[str, bytes] = OrderedDict()
        self._kept = 0

    def put(self, upload: Upload, content: bytes | None = None) -> None:
        self._uploads[upload.handle] = upload
        if len(self._uploads) > MAX_HANDLES:
            handle, _ = self._uploads.popitem(last=False)
            self._kept -= len(self._contents.pop(handle, b""))
        if content is not None:
            self._keep(upload.handle, content)

    def knows(self, handle: str, account: str) -> bool:
        upload = self._uploads.get(handle)
        return upload is not None and upload.account == account

    def get(self, handle: str) -> Upload | None:
        return self._uploads.get(handle)

    def content(self, handle: str) -> bytes | None:
        return self._contents.get(handle)

    def forget(self, account: str) -> None:
        for handle in [handle for handle, upload in self._uploads.items() if upload.account == account]:
            del self._uploads[handle]
            self._kept -= len(self._contents.pop(handle, b""))

    def _keep(self, handle: str, content: bytes) -> None:
        self._contents[handle] = content
        self._kept += len(content)
        while self._kept > MAX_KEPT_BYTES:
            _, oldest = self._contents.popitem(last=False)
            self._kept -= len(oldest)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileWish:
    """A file as a message names it: by its address, or with its content in base64."""

    filename: str
    content_type: str
    url: str = ""
    data: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenFile:
    """A file that came, or the problem why it did not; `content` is kept where the page can show so much."""

    filename: str
    content_type: str
    size: int = 0
    sha256: str = ""
    content: bytes | None = None
    problem: str = ""


class _NotTakenError(Exception):
    """Raised where a file cannot be taken; the text says why."""


async def take(wish: FileWish, *, blind: bool = False) -> TakenFile:
    """Return the file; `blind` cannot reach any address."""
    try:
        if wish.url:
            size, digest, content = await _fetched(wish.url, blind=blind)
        else:
            size, digest, content = await asyncio.to_thread(_unpacked, wish.data)
    except (_NotTakenError, aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
        said = str(error) if isinstance(error, _NotTakenError) else type(error).__name__
        return TakenFile(filename=wish.filename, content_type=wish.content_type, problem=said)
    return TakenFile(
        filename=wish.filename, content_type=wish.content_type, size=size, sha256=digest, content=content
    )


def _unpacked(data: str) -> tuple[int, str, bytes | None]:
    try:
        content = base64.b64decode(data, validate=True)
    except binascii.Error as error:
        raise _NotTakenError("The content is not in base64.") from error
    return len(content), hashlib.sha256(content).hexdigest(), _shown(content)


async def _fetched(url: str, *, blind: bool) -> tuple[int, str, bytes | None]:
    if blind:
        raise _NotTakenError("The address cannot be reached from here.")
    size, digest, kept = 0, hashlib.sha256(), bytearray()
    async with aiohttp.ClientSession(timeout=FETCH_TIMEOUT) as session, session.get(url) as answer:
        if answer.status != 200:
            raise _NotTakenError(f"The address answered {answer.status}.")
        async for piece in answer.content.iter_any():
            size += len(piece)
            if size > MAX_UPLOAD_BYTES:
                raise _NotTakenError("The file is too large.")
            digest.update(piece)
            if size <= MAX_SHOWN_BYTES:
                kept += piece
    return size, digest.hexdigest(), bytes(kept) if len(kept) == size else None


def _shown(content: bytes) -> bytes | None:
    return content if len(content) <= MAX_SHOWN_BYTES else None
