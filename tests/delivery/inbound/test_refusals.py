"""Reports that were refused show on the account's page, and cost a stranger's victim next to nothing."""

from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings

from accounts.models import Account, RefusedReports, User
from delivery.inbound import refusals, webhooks
from delivery.inbound.refusals import Throttle
from delivery.transports import kinds
from tests.factories import AccountFactory, RefusedReportsFactory

WAHA = {"base_url": "http://127.0.0.1:9", "api_key": "a-key", "session": "default"}


@pytest.fixture
def account(db: None, settings: Settings, owner: User, monkeypatch: pytest.MonkeyPatch) -> Account:
    settings.PUBLIC_URL = "http://testserver"
    monkeypatch.setattr(refusals, "_throttle", Throttle(refusals.EVERY))
    return AccountFactory.create(owner=owner, transport="waha", credentials=WAHA)


def report(account: Account, **headers: str) -> int:
    webhook = webhooks.webhook_of(account)
    assert webhook is not None
    response = Client().post(webhook.url, b"{}", content_type="application/json", headers=headers)
    return response.status_code


def test_a_throttle_adds_up_what_it_holds_back() -> None:
    throttle = Throttle(10)
    assert throttle.add(1, now=100) == 1
    assert [throttle.add(1, now=at) for at in (101, 105, 109.9)] == [0, 0, 0]
    assert throttle.add(2, now=105) == 1
    assert throttle.add(1, now=110) == 4
    assert throttle.add(1, now=111) == 0


def test_refused_reports_are_counted_with_the_cause(account: Account) -> None:
    assert report(account) == 403
    refused = RefusedReports.objects.get(account=account)
    assert (refused.count, refused.reason) == (1, "The report is not signed.")
    for _ in range(5):
        assert report(account, **{"X-Webhook-Hmac": "00"}) == 403
    refused.refresh_from_db()
    assert refused.count == 1  # written down a while later

    refusals._throttle._written.clear()
    assert report(account, **{"X-Webhook-Hmac": "00"}) == 403
    refused.refresh_from_db()
    assert (refused.count, refused.reason) == (7, "The signature is wrong.")
    assert refused.first_at < refused.last_at


def test_a_flood_of_strangers_writes_nothing(
    account: Account, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    report(account)
    with django_assert_max_num_queries(20):  # one to find the account, each time
        for _ in range(20):
            report(account)


def test_a_wrong_key_in_the_address_counts_for_nobody(account: Account) -> None:
    response = Client().post(
        reverse("hook", args=[account.public_id, "guessed"]), b"{}", content_type="text/plain"
    )
    assert response.status_code == 404
    assert not RefusedReports.objects.exists()


def test_the_page_says_how_many_when_why_and_from_which_version_reports_are_signed(
    account: Account, client: Client
) -> None:
    client.force_login(account.owner)
    page = reverse("accounts:page", args=[account.pk])
    assert "refused since" not in client.get(page).content.decode()
    RefusedReportsFactory.create(account=account, count=1_204)
    text = client.get(page).content.decode()
    assert "1,204 reports refused since" in text
    assert "The report is not signed." in text
    assert "WAHA signs its reports from version 2024.11.5 on" in text
    RefusedReports.objects.update(last_at=timezone.now() - timedelta(days=8))
    assert "refused since" not in client.get(page).content.decode()


def test_a_new_connection_begins_anew(account: Account) -> None:
    RefusedReportsFactory.create(account=account)
    refusals.forget(account)
    assert not RefusedReports.objects.exists()


@pytest.mark.parametrize(
    "name",
    [name for name, kind in kinds().items() if kind.default_capabilities.webhooks and name != "sandbox"],
)
def test_every_kind_with_webhooks_says_how_its_reports_are_proved(name: str) -> None:
    assert kinds()[name].proof.endswith(".")
