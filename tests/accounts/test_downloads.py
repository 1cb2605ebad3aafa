"""CSV downloads: safe in spreadsheets, and sent piece by piece by both kinds of server."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime

import pytest
from django.db import OperationalError
from django.http import StreamingHttpResponse
from django.test import AsyncRequestFactory, RequestFactory
from pytest_django import Settings

from accounts import downloads
from accounts.downloads import cell, csv_response, streamed
from accounts.models import User


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("=HYPERLINK(1)", "'=HYPERLINK(1)"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("+1-2", "'+1-2"),
        ("-cmd", "'-cmd"),
        ("\t=1", "'\t=1"),
        ("+60123456789", "+60123456789"),
        ("-12.5", "-12.5"),
        (7, "7"),
        (None, ""),
        (datetime(2026, 11, 18, 9, 30, 5, 999, tzinfo=UTC), "2026-11-18T09:30:05+00:00"),
        ("Ann", "Ann"),
    ],
)
def test_a_cell_is_never_a_formula(value: object, written: str) -> None:
    assert cell(value) == written


async def test_an_asgi_server_gets_it_piece_by_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloads, "LINES", 2)
    made: list[int] = []

    def lines() -> Iterator[tuple[int]]:
        for number in range(5):
            made.append(number)
            yield (number,)

    answer = csv_response(AsyncRequestFactory().get("/"), lines(), "numbers")
    assert answer.is_async
    seen = [(piece, len(made)) async for piece in answer]
    assert seen == [
        ("\ufeff".encode(), 0),
        (b"0\r\n1\r\n", 2),
        (b"2\r\n3\r\n", 4),
        (b"4\r\n", 5),
    ]


@pytest.fixture
def few_places(settings: Settings) -> Iterator[None]:
    settings.DATABASE_POOL = 12  # three places, of one person one
    downloads.places.cache_clear()
    yield
    downloads.places.cache_clear()


def answer_to(user: User, lines: Iterator[tuple[object]]) -> StreamingHttpResponse:
    request = AsyncRequestFactory().get("/")
    request.user = user
    return csv_response(request, lines, "numbers")


def download(user: User, lines: Iterator[tuple[object]]) -> AsyncIterator[bytes]:
    return aiter(answer_to(user, lines))


@pytest.mark.usefixtures("few_places")
async def test_downloads_of_one_person_wait_and_those_of_another_begin(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(downloads, "LOOK_AGAIN", 0.01)
    one, other = User(pk=1), User(pk=2)
    first, second, third = (download(each, iter([("a",)])) for each in (one, one, other))
    assert await anext(first) == downloads.BOM.encode()
    waiting = asyncio.ensure_future(anext(second))
    assert await anext(third) == downloads.BOM.encode()
    assert [piece async for piece in third] == [b"a\r\n"]
    assert not waiting.done()
    assert [piece async for piece in first] == [b"a\r\n"]
    assert await waiting == downloads.BOM.encode()
    assert [piece async for piece in second] == [b"a\r\n"]
    assert downloads.places().taken(one.pk) == 0


@pytest.mark.usefixtures("few_places")
async def test_a_download_that_breaks_or_is_broken_off_leaves_its_place() -> None:
    def broken() -> Iterator[tuple[object]]:
        yield ("a",)
        raise OperationalError

    one = User(pk=1)
    left = answer_to(one, iter([("a",)]))
    await anext(aiter(left))
    assert downloads.places().taken(one.pk) == 1
    left.close()
    assert downloads.places().taken(one.pk) == 0
    with pytest.raises(OperationalError):
        assert [piece async for piece in download(one, broken())]
    assert downloads.places().taken(one.pk) == 0


def test_any_other_server_gets_a_plain_one(rf: RequestFactory) -> None:
    answer = csv_response(rf.get("/"), [("a", "=b")], "letters")
    assert answer.getvalue() == b"\xef\xbb\xbfa,'=b\r\n"
    assert answer["Content-Disposition"].startswith('attachment; filename="letters-')


async def test_a_file_is_streamed_under_asgi_as_it_is_read() -> None:
    request = AsyncRequestFactory().get("/")
    answer = streamed(request, iter([b"one ", b"two"]), content_type="image/png", disposition="inline")
    assert answer.is_async
    assert [piece async for piece in answer] == [b"one ", b"two"]
