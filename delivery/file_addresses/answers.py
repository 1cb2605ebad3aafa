"""Says how a request for a file is answered: status, headers and which bytes. Knows no network and no storage."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b

ONE_RANGE = re.compile(r"bytes=(\d*)-(\d*)", re.ASCII)
MOST_DIGITS = 18  # of a position


@dataclass(frozen=True, slots=True, kw_only=True)
class FileAnswer:
    """An answer; `start` and `length` are the bytes of the file that are its body."""

    status: int
    headers: Mapping[str, str]
    start: int = 0
    length: int = 0


def refusal(status: int, *, retry_after: int = 0) -> FileAnswer:
    """Return an answer without a file. It has no body: some gateways would send the body as the file."""
    headers = {"Content-Length": "0", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
    if retry_after:
        headers["Retry-After"] = str(retry_after)
    if status == 405:
        headers["Allow"] = "GET, HEAD"
    return FileAnswer(status=status, headers=headers)


def etag_of(file: str) -> str:
    """Return the tag of a stored file: files are stored by their content, and never change."""
    return f'"{blake2b(file.encode(), digest_size=16).hexdigest()}"'


def answer(
    request: Mapping[str, str], *, size: int, etag: str, content_type: str, filename: str, lasts: int
) -> FileAnswer:
    """Return the answer to a request with these headers (names in lower case), as RFC 9110 wants it.

    `lasts` is for how many seconds the address is good.
    """
    headers = {
        "Content-Type": content_type,
        "Content-Disposition": f'attachment; filename="{filename}"',
        "Accept-Ranges": "bytes",
        "ETag": etag,
        "Cache-Control": f"private, max-age={max(0, lasts)}",
        "X-Content-Type-Options": "nosniff",
        "X-Robots-Tag": "noindex",
        "Referrer-Policy": "no-referrer",
        "Content-Security-Policy": "default-src 'none'; sandbox",
    }
    if _is_known(request.get("if-none-match", ""), etag):
        return FileAnswer(status=304, headers={name: headers[name] for name in ("ETag", "Cache-Control")})
    wanted = _range(request, etag, size)
    if wanted is None:
        return FileAnswer(status=200, headers={**headers, "Content-Length": str(size)}, length=size)
    start, length = wanted
    if not length:
        none = {"Content-Range": f"bytes */{size}", "Content-Length": "0"}
        return FileAnswer(status=416, headers={**headers, **none})
    part = {"Content-Range": f"bytes {start}-{start + length - 1}/{size}", "Content-Length": str(length)}
    return FileAnswer(status=206, headers={**headers, **part}, start=start, length=length)


def _is_known(tags: str, etag: str) -> bool:
    """Decide whether the client has the file already; a tag may be marked as weak."""
    known = [tag.strip().removeprefix("W/") for tag in tags.split(",")]
    return "*" in known or etag in known


def _range(request: Mapping[str, str], etag: str, size: int) -> tuple[int, int] | None:
    """Return the start and the length of the range that was asked for; a length of 0 where there is no such range.

    None means the whole file: no range, several of them, or one of another content.
    """
    if request.get("if-range", etag) != etag:
        return None
    asked = ONE_RANGE.fullmatch(request.get("range", "").replace(" ", ""))
    if asked is None or asked.groups() == ("", "") or max(map(len, asked.groups())) > MOST_DIGITS:
        return None
    first, last = asked.groups()
    if not first:
        length = min(int(last), size)
        return size - length, length
    if last and int(last) < int(first):
        return None
    end = min(int(last), size - 1) if last else size - 1
    return int(first), max(0, end - int(first) + 1)
