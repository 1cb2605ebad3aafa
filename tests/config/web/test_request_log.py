"""The log of requests: what it tells, and what it keeps to itself."""

import io
import logging
import sys

import pytest
from django.test import Client
from structlog.testing import capture_logs

from config.embedded.place import PROJECT
from config.web.log_secrets import without_secret

pytestmark = pytest.mark.django_db


def requests_logged(path: str) -> list[str]:
    with capture_logs() as lines:
        Client().get(path)
    return [line["request"] for line in lines if line["event"] == "request_finished"]


def test_a_request_is_logged_once() -> None:
    assert requests_logged("/accounts/login/?next=/") == ["GET /accounts/login/?next=/"]


@pytest.mark.parametrize("probe", ["/healthz", "/readyz"])
def test_who_watches_does_not_fill_the_log(probe: str) -> None:
    assert requests_logged(probe) == []


@pytest.mark.parametrize(
    ("address", "logged"),
    [
        ("/hooks/7/s3cret", "/hooks/7/..."),
        ("/hooks/7/s3cret?hub.challenge=1", "/hooks/7/..."),
        ("/unsubscribe/s3cret", "/unsubscribe/..."),
        ("No stream from http://a/files/s3cret/file.png", "No stream from http://a/files/..."),
        ("/notifications/move/s3cret/", "/notifications/move/..."),
        (f"/calendar/7-{'0a' * 20}.ics", "/calendar/..."),
        ("/calendar/?view=day", "/calendar/?view=day"),
        ("Not Found: /unsubscribe/s3cret:with-dots.x", "Not Found: /unsubscribe/..."),
        ("GET https://a.example/hooks/7/s3cret?x=1 HTTP/1.1", "GET https://a.example/hooks/7/... HTTP/1.1"),
        ("/unsubscribe/", "/unsubscribe/"),
        ("/reminders/7/", "/reminders/7/"),
    ],
)
def test_secret_ends_of_addresses_are_left_out(address: str, logged: str) -> None:
    assert without_secret(address) == logged


@pytest.mark.parametrize("logger", ["django.request", "django.security", "daphne", "celery", "axes", "any"])
def test_no_logger_tells_a_secret(logger: str) -> None:
    handler = logging.StreamHandler(stream := io.StringIO())
    handler.setFormatter(logging._handlers["stderr"].formatter)  # type: ignore[attr-defined]
    line = logging.LogRecord(logger, logging.ERROR, __file__, 1, "Bad: %s", ("/unsubscribe/s3cret",), None)
    handler.handle(line)
    try:
        int("/notifications/move/s3cret/")
    except ValueError:
        line = logging.LogRecord(logger, logging.ERROR, __file__, 1, "Failed", (), sys.exc_info())
    handler.handle(line)
    assert "/unsubscribe/..." in stream.getvalue()
    assert "/notifications/move/..." in stream.getvalue()
    assert "s3cret" not in stream.getvalue()


@pytest.mark.parametrize(
    ("file", "command"), [("Procfile", "daphne -v 0 "), ("Dockerfile", '"daphne", "-v", "0"')]
)
def test_the_web_server_keeps_no_log_of_whole_addresses(file: str, command: str) -> None:
    assert command in (PROJECT / file).read_text()
