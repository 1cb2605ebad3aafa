"""The shipped nginx configuration, in a real nginx in front of a real Daphne."""

import base64
import os
import socket
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from ssl import SSLError
from urllib.parse import urlencode

import pytest
from axes.models import AccessAttempt
from django.conf import settings
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from pytest_django import Settings
from redis import Redis

from accounts.models import User
from delivery.file_addresses import tokens
from delivery.file_addresses.tokens import Ticket
from tests.browser.conftest import session_of
from tests.browser.site import Site
from tests.deploy.nginx import NAME, Nginx
from tests.factories import AccountFactory

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("nginx")]

CSRF = "b" * 32
FORM = {"Content-Type": "application/x-www-form-urlencoded", "Referer": f"https://{NAME}/login/"}
MEGABYTE = 1024 * 1024
HOSTS = {"ALLOWED_HOSTS": f"{NAME},127.0.0.1", "CSRF_TRUSTED_ORIGINS": f"https://{NAME}", "HTTPS": "true"}


@pytest.fixture(scope="module")
def nginx(
    django_db_setup: None, redis_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Nginx, Site]]:
    with Site(**HOSTS) as site, Nginx(tmp_path_factory.mktemp("nginx"), upstream=site.port) as server:
        yield server, site


@pytest.fixture
def server(nginx: tuple[Nginx, Site], redis: Redis) -> Nginx:
    return nginx[0]


def test_a_page_comes_through(server: Nginx) -> None:
    answer = server.ask("GET", "/login/")
    assert answer.status == 200
    assert "Welcome back" in answer.text  # type: ignore[attr-defined]
    assert answer.headers["Strict-Transport-Security"]  # Django knows that it was HTTPS


def test_plain_http_leads_to_https(server: Nginx) -> None:
    line = HTTPConnection("127.0.0.1", server.plain_port, timeout=60)
    line.request("GET", "/login/?next=/", headers={"Host": NAME})
    answer = line.getresponse()
    assert (answer.status, answer.headers["Location"]) == (301, f"https://{NAME}/login/?next=/")
    line.close()


def test_another_name_is_not_answered(server: Nginx) -> None:
    with pytest.raises(SSLError):
        server.connect(name="elsewhere.example")


@pytest.mark.parametrize(
    ("path", "size"),
    [
        ("/", 4 * MEGABYTE),
        ("/login/", 32 * 1024),
        ("/hooks/0b5ff2ba-3a6b-4b14-8d5c-6cbb7a3f6f0e/key", MEGABYTE + 1),
        ("/notifications/browser/", 100 * 1024),
        ("/unsubscribe/token", 32 * 1024),
        ("/recipients/import/", 53 * MEGABYTE),
        ("/reminders/7/message", 103 * MEGABYTE),
        ("/api/v1/media", 103 * MEGABYTE),
        ("/api/v1/recipients", 4 * MEGABYTE),
        ("/reminders/7/when", 4 * MEGABYTE),
        ("/ws/me/", 4 * MEGABYTE),
    ],
)
def test_a_body_that_is_too_large_is_refused_by_its_length(server: Nginx, path: str, size: int) -> None:
    """The body is not sent: Daphne would wait for it, and never answer."""
    line = server.connect()
    line.sendall(f"POST {path} HTTP/1.1\r\nHost: {NAME}\r\nContent-Length: {size}\r\n\r\n".encode())
    assert line.recv(64).startswith(b"HTTP/1.1 413 ")
    line.close()


def test_a_body_of_unknown_length_is_cut_off(server: Nginx) -> None:
    line = server.connect()
    line.sendall(f"POST /login/ HTTP/1.1\r\nHost: {NAME}\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
    piece = b"4000\r\n" + b"x" * 0x4000 + b"\r\n"
    line.sendall(piece * 3 + b"0\r\n\r\n")
    assert line.recv(64).startswith(b"HTTP/1.1 413 ")
    line.close()


@pytest.mark.parametrize("path", ["/recipients/import/", "/reminders/7/message"])
def test_a_body_that_fits_comes_through(server: Nginx, path: str) -> None:
    answer = server.ask("POST", path, b"x" * 4 * MEGABYTE, {"Content-Type": "application/octet-stream"})
    assert answer.status == 403  # Django's own refusal: no CSRF token


def test_the_file_of_a_message_comes_through_whole_and_in_parts(
    redis: Redis, settings: Settings, tmp_path: Path
) -> None:
    settings.MEDIA_ROOT, settings.FILES_URL = tmp_path, ""
    content = os.urandom(3 * MEGABYTE)
    ticket = Ticket(
        file=default_storage.save("ab/file", ContentFile(content)),
        content_type="image/png",
        account_id=AccountFactory.create().pk,
        run_id=None,
        until=int(time.time()) + 600,
    )
    path = tokens.url_of(ticket)
    with Site(**HOSTS, FILES_URL="https://files.example", MEDIA_ROOT=str(tmp_path)) as site:
        folder = tmp_path / "nginx"
        folder.mkdir()
        with Nginx(folder, upstream=site.port) as other:
            whole = other.ask("GET", path)
            part = other.ask("GET", path, headers={"Range": "bytes=1000000-1999999"})
    assert (whole.status, whole.headers["Content-Length"]) == (200, str(len(content)))
    assert whole.content == content  # type: ignore[attr-defined]
    assert part.status == 206
    assert part.content == content[1_000_000:2_000_000]  # type: ignore[attr-defined]


def test_refusals_do_not_need_daphne(nginx: tuple[Nginx, Site]) -> None:
    server, site = nginx
    site.stop()
    try:
        assert server.ask("POST", "/login/", b"x" * 32 * 1024).status == 413
        assert server.ask("GET", "/login/").status == 502
    finally:
        site.start()


def test_the_address_of_the_client_arrives_and_a_claimed_one_does_not(server: Nginx) -> None:
    claims = {"X-Forwarded-For": "6.6.6.6", "X-Real-IP": "6.6.6.6", "Forwarded": "for=6.6.6.6"}
    answer = server.ask(
        "POST",
        "/login/",
        urlencode({"username": "nobody", "password": "x", "csrfmiddlewaretoken": CSRF}).encode(),
        {**FORM, **claims, "Cookie": f"csrftoken={CSRF}"},
        source="127.0.0.77",
    )
    assert answer.status == 200
    assert list(AccessAttempt.objects.values_list("username", "ip_address")) == [("nobody", "127.0.0.77")]


@pytest.mark.parametrize("path", ["/metrics", "/readyz"])
def test_what_watches_the_installation_is_not_public(server: Nginx, path: str) -> None:
    refused = server.ask("GET", path, source="127.0.0.77")
    assert refused.status == 403
    assert "nginx" in refused.text  # type: ignore[attr-defined]
    inside = server.ask("GET", path)
    assert "nginx" not in inside.text  # type: ignore[attr-defined]


def test_a_socket_opens_and_brings_the_state(server: Nginx, owner: User) -> None:
    line = upgrade(server, session_of(owner), origin=f"https://{NAME}")
    answer = line.recv(4096)
    assert answer.startswith(b"HTTP/1.1 101 ")
    while b'"type"' not in answer:
        answer += (piece := line.recv(4096))
        assert piece
    assert b"unread" in answer
    line.close()


def test_a_socket_from_another_page_is_refused(server: Nginx, owner: User) -> None:
    line = upgrade(server, session_of(owner), origin="https://evil.example")
    assert line.recv(64).startswith(b"HTTP/1.1 403 ")
    line.close()


def test_headers_that_are_too_large_are_refused(server: Nginx) -> None:
    assert server.ask("GET", "/login/", headers={"X-Padding": "x" * 9000}).status == 400


def test_tokens_stay_out_of_the_log(server: Nginx) -> None:
    for path in (
        "/unsubscribe/s3cret-a",
        "/files/s3cret-d/file.png",
        "/hooks/7/s3cret-b",
        "/notifications/move/s3cret-c/",
    ):
        server.ask("GET", path)
        line = HTTPConnection("127.0.0.1", server.plain_port, timeout=60)  # which is logged as well
        line.request("GET", path.replace("s3cret", "s3cret-plain"), headers={"Host": NAME})
        assert line.getresponse().status == 301
        line.close()
    server.ask("GET", "/login/?next=/seen")
    logged = server.logged(until="/login/?next=/seen")
    assert '"GET /unsubscribe/..." 301' in logged
    assert "s3cret" not in logged


def upgrade(server: Nginx, session: str, *, origin: str) -> socket.socket:
    line = server.connect()
    key = base64.b64encode(os.urandom(16)).decode()
    cookie = f"{settings.SESSION_COOKIE_NAME}={session}"
    line.sendall(
        f"GET /ws/me/ HTTP/1.1\r\nHost: {NAME}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n"
        f"Origin: {origin}\r\nCookie: {cookie}\r\n\r\n".encode()
    )
    return line
