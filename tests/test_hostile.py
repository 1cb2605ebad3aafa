"""Whatever a stranger sends is read in a time that grows with its length, and breaks nothing."""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from accounts.addresses import BadAddressError, canonical
from accounts.imports.columns import Column
from accounts.imports.rows import Reading, read_row
from delivery.parts import render, variables
from delivery.transports.email.reports import PassedOver, Reader, event_of
from delivery.transports.http.reading import parsed
from delivery.transports.mail.html import html_of
from delivery.transports.mail.page_words import words_of
from delivery.transports.mail.quoting import own_words
from delivery.transports.networks.addresses import BadWebAddressError, web_address
from reminders.conversations.stop_words import is_stop
from tests.hostile import grows_no_faster_than_its_input

NOW = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)
READER = Reader(own=frozenset({"news@school.example"}), domain="school.example", trusted="mx.example")
FROM = b"From: anna@example.com\r\nIn-Reply-To: <a.0123456789abcdef01234567@school.example>\r\n"
ACCENTS = "\u0315\u0300"  # in an order that Unicode sorts

PAGES = [
    *(
        "<",
        "<a ",
        '<a b="',
        "<a b='\"",
        "<a '\"",
        "<!--",
        "<!-- --",
        "</",
        "<![",
        "<!",
        "<?",
        "&",
        "&#",
        "<script>",
        "<style",
    ),
    *(
        "<style></style",
        "<blockquote>",
        "</blockquote>",
        "<blockquote><p>",
        "<p>",
        "<br",
        "a<b",
        "<a \" > ' <",
        " ",
        "\n",
        "&amp;" * 9,
    ),
]
LINES = [
    *(
        "-",
        "--",
        "-- ",
        "_",
        ">",
        "> ",
        ":",
        "On ",
        "On 1 @:",
        "On 1 a\n",
        "1@\n",
        "\n",
        " ",
        "\t\n",
        "From: ",
        "From:x\n",
        "Sent from ",
        "*",
    ),
    *(ACCENTS, "On\n1\n:\n", "wrote", "a:", "> a\nb\n", "\x0b", "\x85", "\u2028"),
]
WORDS = [
    *(
        "stop ",
        "please ",
        "stop. ",
        "please remove me from your list of ",
        "ever again any more ",
        "please stop sending me any more ",
    ),
    *(
        ACCENTS,
        "\ufdfa",
        "\n",
        ", ",
        "hi, ",
        "a\n",
        "thanks ",
        "bitte nehmen sie mich aus der ",
        "i want to ",
        "tolong jangan hantar lagi saya ",
    ),
]


def test_a_square_would_be_noticed() -> None:
    assert not grows_no_faster_than_its_input(re.compile("<[^>]*>").findall, lambda size: "<" * size, 8_000)


@pytest.mark.parametrize("piece", PAGES)
def test_pages(piece: str) -> None:
    assert grows_no_faster_than_its_input(words_of, lambda size: (piece * size)[:size], 50_000)


@pytest.mark.parametrize("piece", LINES)
def test_quotations(piece: str) -> None:
    assert grows_no_faster_than_its_input(own_words, lambda size: (piece * size)[:size] + "x", 50_000)


@pytest.mark.parametrize("piece", WORDS)
def test_stop_words(piece: str) -> None:
    assert grows_no_faster_than_its_input(is_stop, lambda size: (piece * size)[:size] + "x", 2_000)
    assert grows_no_faster_than_its_input(is_stop, lambda size: (piece * size)[:size], 50_000)


def nested(size: int) -> bytes:
    """Parts in parts in parts, and many lines in the innermost."""
    depth = size // 200
    heads = b"".join(
        b"Content-Type: multipart/mixed; boundary=b%d\r\n\r\n--b%d\r\n" % (n, n) for n in range(depth)
    )
    return FROM + heads + b"\r\n" + b"\n" * (size // 2)


def with_body(head: bytes, piece: bytes) -> Callable[[int], bytes]:
    return lambda size: FROM + head + b"\r\n\r\n" + (piece * size)[:size]


def with_header(name: bytes, piece: bytes) -> Callable[[int], bytes]:
    return lambda size: FROM + name + b": " + (piece * size)[:size] + b"\r\n\r\nSTOP"


MAILS: list[Callable[[int], bytes]] = [
    nested,
    with_body(b"Content-Type: multipart/mixed; boundary=b", b"\r\n--b\r\n"),
    with_body(b"Content-Type: multipart/mixed; boundary=b", b"\n--ba"),
    with_body(
        b"Content-Type: multipart/mixed; boundary=b", b"--b\nContent-Type: multipart/mixed; boundary=b\n\n"
    ),
    with_body(
        b"Content-Type: multipart/report; boundary=b",
        b"\n--b\nContent-Type: message/delivery-status\n\n\nAction: x\n\n",
    ),
    with_body(b"Content-Type: multipart/report; boundary=b", b"\n--b\nContent-Type: message/rfc822\n\n"),
    with_body(b"Content-Type: message/rfc822", b"Content-Type: message/rfc822\n\n"),
    with_body(b"Content-Type: text/html", b"<a "),
    with_body(b"Content-Type: text/plain\r\nContent-Transfer-Encoding: base64", b"A"),
    with_body(b"Content-Type: text/plain\r\nContent-Transfer-Encoding: base64", b"="),
    with_body(b"Content-Type: text/plain\r\nContent-Transfer-Encoding: quoted-printable", b"=\r\n"),
    with_body(b"Content-Type: text/plain\r\nContent-Transfer-Encoding: quoted-printable", b" "),
    with_body(b"Content-Type: text/plain\r\nContent-Transfer-Encoding: x-uuencode", b"begin 644 a\n"),
    with_body(b"Content-Type: text/plain; charset=punycode", b"a-b9"),
    with_body(b"Content-Type: text/plain; charset=idna", b"a."),
    with_body(b"Content-Type: text/plain; charset=unicode_escape", b"\\x41"),
    with_body(b"Content-Type: text/plain; charset=utf-7", b"+AGE-"),
    with_body(b"Content-Type: text/plain; charset=utf-16", b"\xd8\x00"),
    with_body(b"Content-Type: text/plain; charset=zlib", b"x\x9c"),
    with_body(b"Content-Type: application/zip\r\nContent-Transfer-Encoding: base64", b"UEsDBBQ"),
    with_header(b"Subject", b"=?utf-8?q?"),
    with_header(b"Subject", b"=?utf-8?b?=?= "),
    with_header(b"Subject", b"\r\n x"),
    with_header(b"To", b"a@b.example, "),
    with_header(b"X-Comment", b"("),
    with_header(b"References", b"<a@b> "),
    with_header(b"References", b"<"),
    with_header(b"In-Reply-To", b"<<a"),
    with_header(b"Authentication-Results", b"("),
    with_header(b"Authentication-Results", b"; dmarc=pass"),
    with_header(b"Content-Type", b'; a="'),
    with_header(b"Content-Type", b"multipart/mixed; boundary*0=a; "),
    with_header(b"Content-Type", b'text/plain; x="\\'),
    with_header(b"Content-Disposition", b"attachment; "),
    with_header(b"Reply-To", b"\xff\xfe"),
    lambda size: b"From: " + (b"(" * size)[:size] + b"a@b.example\r\n\r\nSTOP",
    lambda size: b"From: " + (b'"' * size)[:size] + b"a@b.example\r\n\r\nSTOP",
    lambda size: b"From: " + (b"a@b," * size)[:size] + b"a@b.example\r\n\r\nSTOP",
    lambda size: b"From: " + (b"<" * size)[:size] + b"a@b.example\r\n\r\nSTOP",
    lambda size: FROM + (b"X: y\r\n" * size)[:size] + b"\r\nSTOP",
    lambda size: FROM + (b"Received: from a by b\r\n\tfor c\r\n" * size)[:size] + b"\r\nSTOP",
    lambda size: (b"\r\n" * size)[:size],
    lambda size: (b"\x00" * size)[:size],
    lambda size: (b"a" * size)[:size],
]


@pytest.mark.parametrize("made", MAILS)
def test_mails(made: Callable[[int], bytes]) -> None:
    def read(raw: bytes) -> object:
        return event_of(raw, reader=READER, now=NOW)

    assert grows_no_faster_than_its_input(read, made, 40_000)
    assert read(made(1_000_000)) is not None


def test_an_error_that_nobody_thought_of_passes_over_one_mail(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: str) -> str:
        raise MemoryError

    monkeypatch.setattr("delivery.transports.email.reports.own_words", broken)
    assert event_of(FROM + b"\r\nHi", reader=READER, now=NOW) is PassedOver.UNREADABLE


ADDRESSES = [
    *(
        "a",
        "1",
        "1 ",
        "@",
        "a@",
        "a.",
        "a@a.",
        "+1",
        "<",
        "mailto:",
        "a-",
        ".",
        "(",
        ACCENTS,
        "\ufdfa",
        "https://",
        "/",
        "é.",
        "1,",
        "1 or ",
    ),
    *("!a:", "#", "[", "xn--", "linkedin.com/in/", "urn:li:a:", "\u200b", "1 ; ", "1ext"),
]


@pytest.mark.parametrize("piece", ADDRESSES)
@pytest.mark.parametrize("channel", ["whatsapp", "email", "linkedin", "matrix"])
def test_addresses(channel: str, piece: str) -> None:
    def read(text: str) -> object:
        try:
            return canonical(channel, text, region="MY")
        except BadAddressError:
            return None

    assert grows_no_faster_than_its_input(read, lambda size: (piece * size)[:size], 1_000)
    assert grows_no_faster_than_its_input(read, lambda size: (piece * size)[:size], 50_000)


@pytest.mark.parametrize("piece", ["a", "\\", "@", "a.", ":", "[", "%", "1.", "é", "/", "?", "é."])
def test_web_addresses(piece: str) -> None:
    def read(text: str) -> object:
        try:
            return web_address(text)
        except BadWebAddressError:
            return None

    assert grows_no_faster_than_its_input(read, lambda size: "https://" + (piece * size)[:size], 100_000)


@pytest.mark.parametrize("piece", ["{{", "{{ a", "{{ " + " " * 50, "{{a }", "}}", "{{ a.b-c"])
def test_variables(piece: str) -> None:
    assert grows_no_faster_than_its_input(variables, lambda size: (piece * size)[:size], 50_000)
    assert grows_no_faster_than_its_input(
        lambda text: render(text, {}), lambda size: (piece * size)[:size], 50_000
    )


def test_spaces_behind_a_bracket() -> None:
    assert grows_no_faster_than_its_input(
        variables, lambda size: "{{" + " " * size + "a" + " " * size, 50_000
    )


@pytest.mark.parametrize("piece", ["\n", "\n ", "http://", "https://a", "<", "https://a...", " \n \n"])
def test_texts_that_become_pages(piece: str) -> None:
    assert grows_no_faster_than_its_input(html_of, lambda size: (piece * size)[:size], 50_000)


@pytest.mark.parametrize("piece", ["a", "\n", ",", ACCENTS, "+1", ";", " "])
def test_cells_of_an_import(piece: str) -> None:
    columns = [Column(title=means, means=means) for means in ("address", "name", "tags")]
    reading = Reading(channel="email", region="", columns=columns)

    def read(cell: str) -> object:
        return read_row(1, ["a@b.example", cell, cell], reading)

    assert grows_no_faster_than_its_input(read, lambda size: (piece * size)[:size], 20_000)


@pytest.mark.parametrize("piece", ["[", '{"a":', '"', "1", "[1,", "\\u0000"])
def test_json(piece: str) -> None:
    assert grows_no_faster_than_its_input(parsed, lambda size: (piece * size)[:size].encode(), 100_000)
    assert parsed(("[" * 100_000).encode()) is None
    assert parsed(json.dumps({"n": "x" * 100_000}).encode()) is not None
