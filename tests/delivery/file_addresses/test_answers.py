"""Answers to requests for a file, as RFC 9110 wants them."""

import pytest

from delivery.file_addresses.answers import FileAnswer, answer, etag_of, refusal

SIZE = 1000
TAG = etag_of("ab/abc")
TOO_FAR = "bytes=" + "9" * 40 + "-"


def asked(**headers: str) -> FileAnswer:
    request = {name.replace("_", "-"): value for name, value in headers.items()}
    return answer(request, size=SIZE, etag=TAG, content_type="image/png", filename="file.png", lasts=600)


def test_a_whole_file_says_what_it_is_and_stays_with_its_reader() -> None:
    found = asked()
    assert (found.status, found.start, found.length) == (200, 0, SIZE)
    assert found.headers["Content-Length"] == "1000"
    assert found.headers["Content-Type"] == "image/png"
    assert found.headers["ETag"] == TAG
    assert found.headers["Cache-Control"] == "private, max-age=600"
    assert found.headers["X-Content-Type-Options"] == "nosniff"
    assert found.headers["Content-Disposition"] == 'attachment; filename="file.png"'


@pytest.mark.parametrize(
    ("asks", "start", "length", "says"),
    [
        ("bytes=0-0", 0, 1, "bytes 0-0/1000"),
        ("bytes=10-19", 10, 10, "bytes 10-19/1000"),
        ("bytes=990-", 990, 10, "bytes 990-999/1000"),
        ("bytes=990-5000", 990, 10, "bytes 990-999/1000"),
        ("bytes=-100", 900, 100, "bytes 900-999/1000"),
        ("bytes=-5000", 0, 1000, "bytes 0-999/1000"),
        ("bytes= 0 - 1", 0, 2, "bytes 0-1/1000"),
    ],
)
def test_a_part_is_sent_where_one_is_asked_for(asks: str, start: int, length: int, says: str) -> None:
    found = asked(range=asks)
    assert (found.status, found.start, found.length) == (206, start, length)
    assert (found.headers["Content-Range"], found.headers["Content-Length"]) == (says, str(length))


@pytest.mark.parametrize("asks", ["bytes=1000-", "bytes=5000-6000", "bytes=-0"])
def test_a_part_that_the_file_does_not_have_is_refused(asks: str) -> None:
    found = asked(range=asks)
    assert (found.status, found.length) == (416, 0)
    assert found.headers["Content-Range"] == "bytes */1000"


@pytest.mark.parametrize(
    "asks",
    ["", "bytes=", "bytes=-", "bytes=5-2", "bytes=0-1,5-6", "items=0-1", "bytes=a-b", "bytes=¹-", TOO_FAR],
)
def test_what_is_no_range_or_several_brings_the_whole_file(asks: str) -> None:
    assert asked(range=asks).status == 200


@pytest.mark.parametrize("tags", [TAG, f"W/{TAG}", f'"other", {TAG}', "*"])
def test_a_file_that_is_known_is_not_sent_again(tags: str) -> None:
    found = asked(if_none_match=tags, range="bytes=0-1")
    assert (found.status, found.length) == (304, 0)
    assert found.headers["ETag"] == TAG


def test_a_file_that_is_known_as_another_is_sent() -> None:
    assert asked(if_none_match='"other"').status == 200
    assert asked(if_range='"other"', range="bytes=0-1").status == 200
    assert asked(if_range=TAG, range="bytes=0-1").status == 206


def test_an_empty_file_has_no_parts() -> None:
    found = answer({"range": "bytes=0-"}, size=0, etag=TAG, content_type="a/b", filename="file", lasts=-5)
    assert found.status == 416
    assert found.headers["Cache-Control"] == "private, max-age=0"


@pytest.mark.parametrize("status", [404, 405, 410, 429, 503])
def test_a_refusal_has_no_body_that_could_be_sent_as_the_file(status: int) -> None:
    found = refusal(status, retry_after=5)
    assert (found.headers["Content-Length"], found.length) == ("0", 0)
    assert found.headers["Cache-Control"] == "no-store"
    assert ("Allow" in found.headers) == (status == 405)
