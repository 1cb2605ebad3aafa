"""Pairing with gateways that take their time: the page waits, and nothing else changes meanwhile."""

from collections.abc import Iterator

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from accounts.models import Account, User
from delivery.sessions import ask, connect
from tests.delivery.service import Service, serving
from tests.factories import AccountFactory

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis")]

WAITS = "The code appears here automatically."


@pytest.fixture
def service() -> Iterator[Service]:
    with serving() as service:
        yield service


def waha(owner: User, service: Service, status: str) -> Account:
    credentials = {"base_url": service.url, "api_key": "a-key", "session": "default"}
    return AccountFactory.create(owner=owner, transport="waha", credentials=credentials, status=status)


def evolution(owner: User, service: Service, status: str) -> Account:
    credentials = {"base_url": service.url, "api_key": "a-key", "instance": "north"}
    return AccountFactory.create(owner=owner, transport="evolution", credentials=credentials, status=status)


def waha_is(service: Service, state: str) -> None:
    service.answers["GET", "/api/sessions/default"] = 200, {"name": "default", "status": state, "config": {}}
    service.answers["POST", "/api/sessions/default/restart"] = 201, {"status": "STARTING"}
    refused = (
        422,
        {"error": "Session status is not as expected", "status": state, "expected": ["SCAN_QR_CODE"]},
    )
    code = 200, {"value": "2@code"}
    service.answers["GET", "/api/default/auth/qr"] = code if state == "SCAN_QR_CODE" else refused


def evolution_is(service: Service, state: str, code: str = "") -> None:
    told = {"instance": {"instanceName": "north", "state": state}}
    service.answers["GET", "/instance/connectionState/north"] = 200, told
    offered = {"code": code, "count": 1} if code else {"count": 0}
    service.answers["GET", "/instance/connect/north"] = 200, told if state == "open" else offered
    service.answers["POST", "/webhook/set/north"] = 201, {"enabled": True}


def shown(client: Client, account: Account, name: str = "pair") -> str:
    return client.get(reverse(f"accounts:{name}", args=[account.pk])).content.decode()


def test_while_waha_starts_the_page_waits_for_the_code(client: Client, owner: User, service: Service) -> None:
    account = waha(owner, service, "unpaired")
    client.force_login(owner)
    waha_is(service, "STOPPED")
    response = client.post(reverse("accounts:connect", args=[account.pk]))
    assert response["Location"] == reverse("accounts:pair", args=[account.pk])

    waha_is(service, "STARTING")
    text = shown(client, account)
    assert WAITS in text
    assert "The codes expired" not in text
    assert WAITS in shown(client, account, "pair_now")
    waha_is(service, "SCAN_QR_CODE")
    assert "Scan within" in shown(client, account, "pair_now")
    waha_is(service, "FAILED")
    assert "The codes expired" in shown(client, account)


def test_while_evolution_has_no_code_yet_the_page_waits(
    client: Client, owner: User, service: Service
) -> None:
    account = evolution(owner, service, "pairing")
    client.force_login(owner)
    evolution_is(service, "connecting")
    text = shown(client, account)
    assert WAITS in text
    assert "cannot be read" not in text
    evolution_is(service, "connecting", "2@code")
    assert "Scan within" in shown(client, account, "pair_now")
    evolution_is(service, "open")
    assert client.get(reverse("accounts:pair_now", args=[account.pk]))["HX-Redirect"]
    account.refresh_from_db()
    assert account.status == "active"


@pytest.mark.parametrize("status", ["active", "paused", "offline", "flagged", "unpaired", "pairing"])
def test_a_session_that_is_starting_changes_no_account(owner: User, service: Service, status: str) -> None:
    for account, begin in (
        (waha(owner, service, status), waha_is),
        (evolution(owner, service, status), evolution_is),
    ):
        begin(service, "connecting" if account.transport == "evolution" else "STARTING")
        connect.look(account)
        account.refresh_from_db()
        assert account.status == status


def test_a_webhook_registration_makes_no_instance_and_starts_none(
    owner: User, service: Service, settings: Settings
) -> None:
    settings.PUBLIC_URL = "https://paceline.example"
    account = evolution(owner, service, "active")
    connect.register_webhooks()  # there is no such instance
    account.refresh_from_db()
    assert (account.status, account.reports_to) == ("active", "")

    with pytest.raises(ask.NoAnswerError, match="does not exist"):
        connect.renew_webhook(account, by=owner)
    evolution_is(service, "close")
    connect.renew_webhook(account, by=owner)
    account.refresh_from_db()
    assert account.reports_to == settings.PUBLIC_URL
    made_or_started = {("POST", "/instance/create"), ("GET", "/instance/connect/north")}
    assert not made_or_started & set(service.asked)


def test_a_person_who_connects_makes_the_instance(client: Client, owner: User, service: Service) -> None:
    account = evolution(owner, service, "unpaired")
    service.answers["POST", "/instance/create"] = 201, {"instance": {"status": "connecting"}}
    client.force_login(owner)
    client.post(reverse("accounts:connect", args=[account.pk]))
    account.refresh_from_db()
    assert account.status == "pairing"
    assert ("POST", "/instance/create") in service.asked


def test_a_restart_for_a_new_webhook_flags_nobody(owner: User, service: Service, settings: Settings) -> None:
    """WAHA restarts a session whose configuration changed, and says STARTING."""
    settings.PUBLIC_URL = "https://paceline.example"
    account = waha(owner, service, "active")
    waha_is(service, "WORKING")
    service.answers["PUT", "/api/sessions/default"] = 200, {"name": "default", "status": "STARTING"}
    connect.register_webhooks()
    account.refresh_from_db()
    assert (account.status, account.reports_to) == ("active", settings.PUBLIC_URL)
