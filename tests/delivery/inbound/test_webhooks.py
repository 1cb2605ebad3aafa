"""Webhooks over real HTTP, signed by the real sandbox or by the test."""

import hmac
import json
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer
from redis import Redis

from accounts.models import Account
from activity.models import Inbound
from config.celery import app
from delivery.inbound import webhooks
from delivery.sessions import connect
from delivery.transports.base import Webhook
from sandbox.process import SandboxProcess
from tests.factories import AccountFactory


@pytest.fixture
def reachable(settings: Settings, live_server: LiveServer, redis: Redis) -> str:
    settings.PUBLIC_URL = live_server.url
    return str(live_server.url)


@pytest.fixture
def account(transactional_db: None, gateway: SandboxProcess) -> Account:
    credentials = {"base_url": gateway.url, "account": f"hook-{uuid4().hex}", "token": "a-token"}
    return AccountFactory.create(credentials=credentials)


def webhook(account: Account) -> Webhook:
    found = webhooks.webhook_of(account)
    assert found is not None
    return found


def report(**facts: Any) -> bytes:
    made = {"id": uuid4().hex, "at": time.time_ns() // 1_000_000, "account": "a", "event": "message", **facts}
    return json.dumps(made).encode()


MESSAGE = {"id": "r1", "from": "120363000000000001@g.us", "chat": "120363000000000001@g.us", "text": "Hi"}


def post(
    account: Account,
    body: bytes,
    *,
    secret: str = "",
    age: float = 0,
    url: str = "",
    headers: dict[str, str] | None = None,
) -> int:
    """The status of the answer to a request of the sandbox's kind."""
    hook = webhook(account)
    timestamp = str(int((time.time() - age) * 1000))
    digest = hmac.new((secret or hook.secret).encode(), timestamp.encode() + b"." + body, "sha256")
    signed = {
        "Content-Type": "application/json",
        "X-Sandbox-Timestamp": timestamp,
        "X-Sandbox-Signature": f"sha256={digest.hexdigest()}",
    }
    address = urlsplit(url or hook.url)
    client = HTTPConnection(address.netloc, timeout=20)
    try:
        client.request("POST", address.path, body=body, headers=signed | (headers or {}))
        return client.getresponse().status
    finally:
        client.close()


def until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 15
    while not done():
        assert time.monotonic() < deadline, "It did not happen."
        time.sleep(0.02)


def test_the_sandbox_reports_what_somebody_wrote(
    reachable: str, account: Account, gateway: SandboxProcess
) -> None:
    connect.connect(account, by=None)
    account.refresh_from_db()
    assert account.reports_to == reachable

    name = account.credentials["account"]
    gateway.write_back(name, "120363000000000001@g.us", "Count me in 🎶")
    until(lambda: Inbound.objects.filter(account=account, kind="message").exists())
    inbound = Inbound.objects.get(account=account, kind="message")
    assert (inbound.text, inbound.chat) == ("Count me in 🎶", "120363000000000001@g.us")
    assert inbound.handled_at is None


def test_a_request_is_answered_at_once_and_leaves_its_work_to_a_task(
    reachable: str, account: Account, redis: Redis
) -> None:
    assert post(account, report(message=MESSAGE)) == 200
    with app.connection_for_read() as broker:
        queued = broker.SimpleQueue("paceline").get(timeout=5)
    assert queued.headers["task"] == "reminders.work_on_inbound"
    assert queued.payload[0] == [account.pk]


def test_the_same_event_many_times_at_once_is_stored_once(reachable: str, account: Account) -> None:
    body = report(message=MESSAGE)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: post(account, body), range(16)))
    assert answers == [200] * 16
    assert Inbound.objects.filter(account=account).count() == 1


@pytest.mark.parametrize(
    ("wrong", "status"),
    [
        ({"secret": "guessed"}, 403),
        ({"age": 3600}, 403),  # said again an hour later
        ({"age": -3600}, 403),
        ({"headers": {"X-Sandbox-Signature": ""}}, 403),
        ({"headers": {"X-Sandbox-Signature": "sha256=ü"}}, 403),
    ],
    ids=["another secret", "stale", "from the future", "unsigned", "not a signature"],
)
def test_what_is_not_the_services_own_word_of_now_is_refused(
    reachable: str, account: Account, wrong: dict[str, Any], status: int
) -> None:
    assert post(account, report(message=MESSAGE), **wrong) == status
    assert not Inbound.objects.exists()


def test_a_changed_body_is_refused(reachable: str, account: Account) -> None:
    """The signature is of the raw body: not even a space may be added."""
    body = report(message=MESSAGE)
    hook = webhook(account)
    timestamp = str(time.time_ns() // 1_000_000)
    digest = hmac.new(hook.secret.encode(), timestamp.encode() + b"." + body, "sha256").hexdigest()
    headers = {"X-Sandbox-Timestamp": timestamp, "X-Sandbox-Signature": f"sha256={digest}"}
    assert post(account, body, headers=headers) == 200
    assert post(account, body + b" ", headers=headers) == 403


@pytest.mark.parametrize("body", [b"", b"not json", b"[]", b"\xff\xfe"])
def test_what_is_not_a_report_is_refused_though_it_is_signed(
    reachable: str, account: Account, body: bytes
) -> None:
    assert post(account, body) == 403


@pytest.mark.parametrize(
    "facts",
    [
        {"text": "half a character \ud83d", "from": "\ud83d", "chat": "\ud83d"},
        {"text": "nothing\x00", "from": "\x00", "chat": "\x00", "id": "\x00"},
        {"text": "x" * 100_000, "from": "y" * 10_000, "id": "z" * 10_000},
        {"text": {"deep": [1]}, "from": None, "chat": 7, "id": []},
    ],
    ids=["half characters", "NUL", "very long", "other types"],
)
def test_whatever_a_service_signs_is_taken_or_refused_and_breaks_nothing(
    reachable: str, account: Account, facts: dict[str, Any]
) -> None:
    assert post(account, report(id="\ud83d", message=MESSAGE | facts)) in {200, 403}


@pytest.mark.parametrize("at", [-(10**17), 10**17, 1e300, float("nan"), "soon", None])
def test_a_time_that_no_clock_shows_breaks_nothing(reachable: str, account: Account, at: Any) -> None:
    assert post(account, report(at=at, message=MESSAGE)) in {200, 403}


def test_a_body_that_is_too_large_is_refused_before_it_is_looked_at(
    reachable: str, account: Account, settings: Settings
) -> None:
    settings.WEBHOOK_MAX_BYTES = 1024
    assert post(account, report(message=MESSAGE | {"text": "x" * 1024}), secret="guessed") == 413
    assert not Inbound.objects.exists()


def test_an_address_that_was_guessed_leads_nowhere(reachable: str, account: Account) -> None:
    right = webhook(account).url
    body = report(message=MESSAGE)
    assert post(account, body, url=right[:-1] + ("a" if right[-1] != "a" else "b")) == 404
    assert post(account, body, url=right.replace(str(account.public_id), str(uuid4()))) == 404
    assert post(account, body, url=right) == 200


def test_a_renewed_webhook_believes_neither_the_old_address_nor_the_old_secret(
    reachable: str, account: Account, gateway: SandboxProcess
) -> None:
    connect.connect(account, by=None)
    old = webhook(account)
    renewed = connect.renew_webhook(account, by=account.owner)
    body = report(message=MESSAGE)
    assert post(renewed, body, url=old.url, secret=old.secret) == 404
    assert post(renewed, body, secret=old.secret) == 403
    assert post(renewed, body) == 200

    # And the service was told: what it reports from now on is believed.
    gateway.write_back(account.credentials["account"], "120363000000000001@g.us", "Still here")
    until(lambda: Inbound.objects.filter(text="Still here").exists())


@pytest.mark.parametrize("event", ["presence", "", None, 7])
def test_what_is_reported_beside_what_we_know_is_taken_and_means_nothing(
    reachable: str, account: Account, event: Any
) -> None:
    assert post(account, report(event=event, message=MESSAGE)) == 200
    assert not Inbound.objects.exists()


def test_another_accounts_word_counts_nothing(reachable: str, account: Account) -> None:
    other = AccountFactory.create(owner=account.owner, credentials=dict(account.credentials))
    assert post(account, report(message=MESSAGE), secret=webhook(other).secret) == 403


def test_a_service_that_asks_no_questions_gets_no_answers(reachable: str, account: Account) -> None:
    address = urlsplit(webhook(account).url)
    client = HTTPConnection(address.netloc, timeout=20)
    client.request("GET", address.path + "?hub.challenge=1")
    assert client.getresponse().status == 404
    client.close()


def test_a_browser_with_a_login_needs_no_token_and_gains_nothing(
    db: None, settings: Settings, account: Account
) -> None:
    settings.PUBLIC_URL = "http://testserver"
    client = Client(enforce_csrf_checks=True)
    client.force_login(account.owner)
    response = client.post(webhook(account).url, b"{}", content_type="application/json")
    assert response.status_code == 403
    assert response.content == b"Refused."


def test_no_log_tells_the_address(
    db: None, settings: Settings, account: Account, caplog: pytest.LogCaptureFixture
) -> None:
    settings.PUBLIC_URL = "http://testserver"
    with caplog.at_level(logging.INFO):
        Client().post(webhook(account).url, b"{}", content_type="application/json")
    assert caplog.records
    assert account.webhook["key"] not in caplog.text
    assert account.webhook["secret"] not in caplog.text
    assert str(account.public_id) in caplog.text


def test_without_a_public_address_there_is_no_webhook(db: None, settings: Settings, account: Account) -> None:
    settings.PUBLIC_URL = ""
    assert webhooks.webhook_of(account) is None


def test_credentials_that_nobody_can_open_are_no_reason_to_forget_a_report(
    db: None, settings: Settings, account: Account
) -> None:
    settings.PUBLIC_URL = "http://testserver"
    account.credentials = {"account": "a"}
    account.save()
    response = Client().post(webhook(account).url, b"{}", content_type="application/json")
    assert response.status_code == 503  # the service tries again


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000 + b"]" * 100_000,
        b'{"id":' + b"[" * 50_000 + b"]" * 50_000 + b"}",
        b'{"id": "a", "at": 1, "event": "message", "message": {"id": ' + b"[" * 900 + b"]" * 900 + b"}}",
        b'{"id": "a\\u0000", "at": 1, "event": "message"}',
        b"9" * 5000,
        b"\xff",
    ],
)
def test_a_signed_report_that_cannot_be_read_is_refused(
    account: Account, reachable: str, body: bytes
) -> None:
    assert 400 <= post(account, body) < 500


def test_a_service_may_try_the_address_before_it_takes_it(client: Client, db: None) -> None:
    account = AccountFactory.create()
    address = reverse("hook", args=[account.public_id, account.webhook["key"]])
    assert client.head(address).status_code == 200
    assert client.head(reverse("hook", args=[account.public_id, "another"])).status_code == 404
