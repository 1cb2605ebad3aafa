"""Parses an e-mail within fixed bounds: bytes, headers, parts and nesting.

Python's own parser resumes one generator per level of nesting for each line, and its header classes cut a value piece
by piece: a stranger's e-mail of some hundred kilobytes can keep it busy for minutes. Here every byte is looked at a
fixed number of times, and anything beyond a bound is left out.
"""

import base64
import codecs
import quopri
import re
from collections.abc import Iterator
from dataclasses import dataclass
from email.errors import HeaderParseError
from email.header import decode_header, make_header
from email.message import Message

MOST_BYTES = 200_000
MOST_HEADER_BYTES = 100_000
MOST_HEADERS = 300
LONGEST_VALUE = 4_000
MOST_PARTS = 50
DEEPEST = 6
_NOT_BASE64 = re.compile(rb"[^A-Za-z0-9+/]+")
# These read bytes in ways of their own: not linear in time, or not as text.
_NO_CHARSETS = frozenset(
    {"punycode", "idna", "unicode_escape", "raw-unicode-escape", "raw_unicode_escape", "undefined"}
)


@dataclass(frozen=True, slots=True)
class Part:
    """One part of an e-mail, or the whole of it: its headers, in their order, and its encoded body."""

    headers: tuple[tuple[str, str], ...]  # names in lower case
    body: bytes

    def all(self, name: str) -> list[str]:
        return [value for each, value in self.headers if each == name]

    def first(self, name: str) -> str:
        """Return the value of the topmost header of this name; empty where there is none."""
        return next((value for each, value in self.headers if each == name), "")

    def words(self, name: str) -> str:
        """Return the value of a header as text, also where it was written in an encoded form."""
        value = self.first(name)
        try:
            return " ".join(str(make_header(decode_header(value))).split())
        except (HeaderParseError, LookupError, ValueError, RecursionError):
            return value

    @property
    def kind(self) -> str:
        return self._described().get_content_type()

    @property
    def attached(self) -> bool:
        return self.first("content-disposition").lower().startswith("attachment")

    def text(self) -> str:
        """Return the body as text."""
        charset = str(self._described().get_content_charset("utf-8"))
        try:
            name = codecs.lookup(charset).name
            if name not in _NO_CHARSETS and name not in {"utf-8", "ascii"}:
                return self.content().decode(name, "replace")
        except (LookupError, ValueError):
            pass
        return _decoded(self.content())

    def content(self) -> bytes:
        """Return the decoded body, also of one that was cut off."""
        match self.first("content-transfer-encoding").strip().lower():
            case "base64":
                plain = _NOT_BASE64.sub(b"", self.body)
                return base64.b64decode(plain[: len(plain) // 4 * 4] + _rest(plain))
            case "quoted-printable":
                return quopri.decodestring(self.body)
        return self.body

    @property
    def boundary(self) -> bytes:
        """Return the boundary between the parts; empty where there are none."""
        described = self._described()
        found = described.get_boundary("") if described.get_content_maintype() == "multipart" else ""
        return str(found)[:200].encode(errors="surrogateescape")

    def _described(self) -> Message:
        described = Message()
        described["Content-Type"] = self.first("content-type")[:1_000] or "text/plain"
        return described


def part_of(raw: bytes) -> Part:
    """Read the headers of an e-mail or of a part of it."""
    head, body = _divided(raw[:MOST_BYTES])
    return Part(tuple(_headers(head[:MOST_HEADER_BYTES])), body)


def parts_of(whole: Part) -> list[Part]:
    """Return the parts that are not made of parts themselves, in their order; the whole, where it has none."""
    found: list[Part] = []
    waiting = [(whole, 0)]
    while waiting and len(found) < MOST_PARTS:
        part, depth = waiting.pop()
        if boundary := part.boundary:
            inside = list(_between(part.body, boundary)) if depth < DEEPEST else []
            waiting += [(part_of(each), depth + 1) for each in reversed(inside)]
        else:
            found.append(part)
    return found


def groups_of(body: bytes) -> list[Part]:
    """Return the groups of headers in a report of delivery, one for the whole and one for each recipient."""
    groups = body.replace(b"\r\n", b"\n").split(b"\n\n", MOST_PARTS)[:MOST_PARTS]
    return [part_of(group.lstrip(b"\n") + b"\n\n") for group in groups]


def _decoded(content: bytes) -> str:
    """Return the text. Bytes that are not UTF-8 are read as Western European, which old programs send undeclared.

    A character that was cut in two at the end does not change the encoding.
    """
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(content)
    except UnicodeDecodeError:
        return content.decode("cp1252", "replace")


def _divided(raw: bytes) -> tuple[bytes, bytes]:
    """Return the headers, and what follows the first empty line."""
    if raw.startswith((b"\n", b"\r\n")):
        return b"", raw.lstrip(b"\r\n")
    ends = [(raw.find(gap), len(gap)) for gap in (b"\r\n\r\n", b"\n\n")]
    found = [(at, length) for at, length in ends if at >= 0]
    at, length = min(found, default=(len(raw), 0))
    return raw[:at], raw[at + length :]


def _headers(head: bytes) -> Iterator[tuple[str, str]]:
    """Return each header with its value on one line."""
    gathered: list[list[str]] = []
    for line in _decoded(head).split("\n"):
        if line[:1] in {" ", "\t"} and gathered:
            gathered[-1].append(line.strip())
        elif len(gathered) == MOST_HEADERS:
            break
        else:
            gathered.append([line.rstrip("\r")])
    for lines in gathered:
        name, colon, value = " ".join(lines).partition(":")
        if colon:
            yield name.strip().lower()[:100], value.strip()[:LONGEST_VALUE]


def _between(body: bytes, boundary: bytes) -> Iterator[bytes]:
    """Return the texts between the lines of a boundary, at most MOST_PARTS of them."""
    line, body = b"\n--" + boundary, b"\n" + body
    begin, position, count = -1, 0, 0
    while count < MOST_PARTS and (found := body.find(line, position)) >= 0:
        position = found + len(line)
        after = body[position : position + 2]
        if after[:1] not in {b"", b" ", b"\t", b"\r", b"\n"} and after != b"--":
            continue  # another boundary that begins with the same letters
        if begin >= 0:
            yield body[begin:found].removesuffix(b"\r")
            count += 1
        end = body.find(b"\n", position)
        begin = end + 1 if end >= 0 and after != b"--" else -1
        if begin < 0:
            return
        position = end  # the next boundary may begin right here
    if begin >= 0 and count < MOST_PARTS:
        yield body[begin:]  # the e-mail was cut off


def _rest(plain: bytes) -> bytes:
    """Return the last letters of base64 that was cut off, filled up to four."""
    rest = plain[len(plain) // 4 * 4 :]
    return rest + b"=" * (4 - len(rest)) if len(rest) > 1 else b""
