"""The sentences of pages while a real gateway is down, hangs, fails or sets a rate limit (SPEC U6)."""

import re
import threading
from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from accounts.models import Account
from delivery.engine import pump
from delivery.models import Run
from tests.delivery.faulty_gateway import FaultyGateway, faulty_gateway
from tests.delivery.stage import Stage, counted

pytestmark = pytest.mark.django_db(transaction=True)
SECRET = "a-secret-of-the-gateway"


@pytest.fixture
def waha() -> Iterator[FaultyGateway]:
    with faulty_gateway() as gateway:
        yield gateway


@pytest.fixture
def account(stage: Stage, waha: FaultyGateway, quick: Settings) -> Account:
    quick.RATE_LIMITED_SECONDS = quick.NOT_CONNECTED_SECONDS = quick.BACKOFF_BASE_SECONDS = 30
    quick.SEND_TIMEOUT_SECONDS = 20
    account = stage.account(name="Parents phone", transport="waha")
    account.credentials = {"base_url": waha.url, "session": "default", "api_key": SECRET}
    account.save(update_fields=["credentials"])
    return account


def text_of(response: object) -> str:
    content = response.content.decode()  # type: ignore[attr-defined]  # the test client's answer
    return " ".join(re.sub(r"<[^>]+>", "", content).split())


def pages(stage: Stage, account: Account, run: Run) -> dict[str, str]:
    """Return what each page says about the account, without markup."""
    client = Client()
    client.force_login(stage.owner)
    urls = {
        "account": reverse("accounts:now", args=[account.pk]),
        "list": reverse("accounts:list"),
        "run": reverse("runs:progress", args=[run.pk]),
        "reminder": reverse("reminders:page", args=[run.reminder_id]),
        "dashboard": "/",
    }
    return {name: text_of(client.get(url)) for name, url in urls.items()}


def says(stage: Stage, account: Account, run: Run, pattern: str) -> None:
    """Every door says it; those of a run after the account's name."""
    for name, text in pages(stage, account, run).items():
        named = f"Parents phone: {pattern}"
        wanted = pattern[:1].upper() + pattern[1:] if name in {"account", "list"} else named
        assert re.search(wanted, text), f"{name}: {text[-900:]}"
        assert "Sending" not in text or name != "account"
        assert SECRET not in text


SINCE = r"\d\d:\d\d"
AGAIN = r"Next try (in [\d smin]+|\d\d:\d\d)\."


def test_a_gateway_that_is_down(stage: Stage, account: Account, waha: FaultyGateway) -> None:
    run = stage.fire(account, to=3)
    waha.stop()
    pump.pump(account.pk)
    refused = rf"\(connection refused, 127\.0\.0\.1:{waha.port}\)"
    says(stage, account, run, rf"no answer from the gateway since {SINCE} {refused}\. {AGAIN}")
    assert counted(run) == {"pending": 3}  # no recipient is at fault


@pytest.mark.parametrize(
    ("status", "headers", "said"),
    [
        (503, {}, rf"the gateway answers with errors since {SINCE} \(the gateway answered 503.*\)\. {AGAIN}"),
        (
            429,
            {"Retry_After": "1260"},
            rf"WhatsApp asked us to slow down at {SINCE} \(the gateway answered 429.*\)\. Next try .*\d\d:\d\d",
        ),
    ],
)
def test_a_gateway_that_refuses_everybody(
    stage: Stage, account: Account, waha: FaultyGateway, status: int, headers: dict[str, str], said: str
) -> None:
    run = stage.fire(account, to=3)
    waha.say(status, {"message": f"no\n    at Session.send (/app/x.js:1:2) {SECRET}"}, **headers)
    pump.pump(account.pk)
    says(stage, account, run, said)
    assert "x.js" not in pages(stage, account, run)["account"]


def test_since_when_is_said_of_the_trouble_that_is_named(
    stage: Stage, account: Account, waha: FaultyGateway
) -> None:
    """It answered with errors for 20 minutes, and now it is down: "no answer since" 20 minutes ago would be wrong."""
    run = stage.fire(account, to=3)
    waha.say(503, {"message": "no"})
    pump.pump(account.pk)
    began = timezone.now() - timedelta(minutes=20)
    Account.objects.filter(pk=account.pk).update(trouble_since=began, held_until=timezone.now())
    run.targets.update(not_before=timezone.now())
    waha.stop()
    pump.pump(account.pk)
    account.refresh_from_db()
    assert (account.trouble_kind, account.trouble_since) == ("unreachable", began)
    now = rf"{timezone.now() - timedelta(minutes=1):%H:%M}|{timezone.now():%H:%M}"
    says(stage, account, run, rf"no answer from the gateway since ({now}) ")


def test_a_gateway_that_fails_again_and_again(stage: Stage, account: Account, waha: FaultyGateway) -> None:
    """Without a key each 500 is in doubt: a handful of them in a row stops the account."""
    run = stage.fire(account, to=20)
    waha.say(500, {"message": "the database is away"})
    pump.pump(account.pk)
    says(
        stage,
        account,
        run,
        rf"the gateway does not say since {SINCE} whether messages arrived \(.*500.*\)\. {AGAIN}",
    )
    assert counted(run).get("unconfirmed", 0) < 10


@pytest.mark.parametrize(("status", "kind"), [(500, "in_doubt"), (503, "server_errors")])
def test_the_words_stay_true_while_it_is_tried_again(
    stage: Stage, account: Account, waha: FaultyGateway, quick: Settings, status: int, kind: str
) -> None:
    """The service is asked how the account is before the next message: that fails alike, and is no silence."""
    quick.TROUBLE_WAIT_MAX_MINUTES = 0.05 / 60
    run = stage.fire(account, to=20)
    waha.say(status)
    for _ in range(3):
        pump.pump(account.pk)
        account.refresh_from_db()
        assert account.trouble_kind == kind
    assert "No answer" not in pages(stage, account, run)["account"]


def test_a_gateway_that_hangs(stage: Stage, account: Account, waha: FaultyGateway) -> None:
    run = stage.fire(account, to=1)
    waha.hangs = True
    thread = threading.Thread(target=pump.pump, args=(account.pk,))
    thread.start()
    try:
        while not waha.asked and thread.is_alive():
            thread.join(0.05)
        # As if it had begun a while ago: nobody waits for a test.
        run.targets.filter(status="sending").update(begun_at=timezone.now() - timedelta(seconds=12))
        says(stage, account, run, r"the gateway has not answered for 1[2-9] s\.")
    finally:
        waha.answer_now()
        thread.join()


def test_it_says_so_once_the_gateway_is_back(
    stage: Stage, account: Account, waha: FaultyGateway, quick: Settings
) -> None:
    quick.BACKOFF_BASE_SECONDS = quick.NOT_CONNECTED_SECONDS = 0.05
    quick.TROUBLE_WAIT_MAX_MINUTES = 0.1 / 60
    run = stage.fire(account, to=2)
    waha.say(503)
    pump.pump(account.pk)
    account.refresh_from_db()
    assert account.trouble_kind == "server_errors"
    waha.say(201, {"id": "true_1@c.us_AAA", "status": "WORKING", "numberExists": True})
    for _ in range(5):
        pump.pump(account.pk)
    account.refresh_from_db()
    assert account.trouble_kind == ""
    assert counted(run) == {"sent": 2}
    assert "Ready. Nothing to send." in pages(stage, account, run)["account"]
