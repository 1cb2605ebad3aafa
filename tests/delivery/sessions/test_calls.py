"""Calls to services: never with a database connection in hand, never inside a transaction, a few per person."""

from collections.abc import Iterator
from http import HTTPStatus

import pytest
from django.db import connection, transaction
from django.http import HttpRequest
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from accounts.models import Account, User
from delivery.sessions import ask, calls
from delivery.transports.base import AccountState
from delivery.transports.sandbox.send import SandboxTransport
from tests.factories import AccountFactory

CALLING_PAGES = [
    ("post", "accounts:check"),
    ("post", "accounts:connect"),
    ("get", "accounts:pair"),
    ("get", "accounts:pair_now"),
    ("post", "accounts:pair"),
    ("post", "accounts:log_out"),
    ("post", "accounts:renew_webhook"),
]


@pytest.fixture(autouse=True)
def few(settings: Settings) -> Iterator[None]:
    settings.OUTWARD_CALLS, settings.OUTWARD_CALLS_PER_PERSON = 3, 2
    calls.shares.cache_clear()
    yield
    calls.shares.cache_clear()


def account_of(owner: User) -> Account:
    credentials = {"base_url": "http://127.0.0.1:9", "account": "a", "token": "t", "pairing": "yes"}
    return AccountFactory.create(owner=owner, transport="sandbox", credentials=credentials)


def request_of(user: User) -> HttpRequest:
    request = HttpRequest()
    request.user = user
    return request


class Witness:
    """Notes whether anybody held a database connection while a service was asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.held: list[bool] = []
        for name in ("status", "connect", "pairing", "pairing_code", "disconnect", "close"):
            monkeypatch.setattr(SandboxTransport, name, self._asked)
        monkeypatch.setattr(SandboxTransport, "log_in", self._logged_in)

    async def _asked(self, *_: object, **__: object) -> AccountState:
        self.held.append(connection.connection is not None)
        return AccountState.STOPPED

    async def _logged_in(self, *_: object) -> None:
        await self._asked()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("method", "page"), CALLING_PAGES)
def test_no_page_holds_a_connection_while_a_service_is_asked(
    method: str, page: str, owner: User, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = account_of(owner)
    witness = Witness(monkeypatch)
    client.force_login(owner)
    getattr(client, method)(reverse(page, args=[account.pk]), {"phone": "+4915112345678"})
    assert witness.held
    assert not any(witness.held)


@pytest.mark.django_db(transaction=True)
def test_the_admin_holds_no_connection_either(
    staff: User, owner: User, admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = account_of(owner)
    witness = Witness(monkeypatch)
    for action in ("check_connection", "connect", "log_out"):
        admin_client.post(
            reverse("admin:accounts_account_changelist"),
            {"action": action, "_selected_action": account.pk, "confirmed": "yes"},
        )
    assert len(witness.held) >= 3
    assert not any(witness.held)


@pytest.mark.django_db(transaction=True)
def test_a_call_inside_a_transaction_is_refused(owner: User) -> None:
    account = account_of(owner)
    with pytest.raises(calls.OpenTransactionError), transaction.atomic():
        ask.ask(account, lambda transport: transport.status())


@pytest.mark.django_db
def test_the_transaction_around_a_test_is_left_alone(owner: User) -> None:
    calls.release_connection()
    assert User.objects.filter(pk=owner.pk).exists()


@pytest.mark.django_db
def test_a_third_call_of_one_person_is_refused_and_another_person_still_calls(
    owner: User, stranger: User
) -> None:
    with (
        calls.on_behalf_of(request_of(owner)),
        calls.calling(),
        calls.calling(),
        pytest.raises(calls.BusyError) as refused,
        calls.calling(),
    ):
        pass
    assert refused.value.status == HTTPStatus.TOO_MANY_REQUESTS
    with (
        calls.on_behalf_of(request_of(owner)),
        calls.calling(),
        calls.calling(),
        calls.on_behalf_of(request_of(stranger)),
        calls.calling(),
    ):
        assert calls.shares().taken(stranger.pk) == 1
        with pytest.raises(calls.BusyError) as full, calls.calling():
            pass
    assert full.value.status == HTTPStatus.SERVICE_UNAVAILABLE


@pytest.mark.django_db
def test_one_request_does_not_go_on_asking_for_ever(owner: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "LONGEST_REQUEST", -1.0)
    with (
        calls.on_behalf_of(request_of(owner)),
        pytest.raises(calls.BusyError, match="Choose fewer"),
        calls.calling(),
    ):
        pass


@pytest.mark.django_db
def test_work_that_no_request_asked_for_needs_no_place() -> None:
    with calls.calling(), calls.calling(), calls.calling(), calls.calling():
        assert calls.shares().taken(None) == 0


class TestTheRefusal:
    @pytest.fixture
    def account(self, owner: User, client: Client) -> Iterator[Account]:
        client.force_login(owner)
        for _ in range(2):
            calls.shares().take(owner.pk)
        yield account_of(owner)
        for _ in range(2):
            calls.shares().give_back(owner.pk)

    def test_says_when_to_come_back(self, account: Account, client: Client) -> None:
        answer = client.post(reverse("accounts:check", args=[account.pk]))
        assert (answer.status_code, answer["Retry-After"]) == (429, "10")
        assert "Wait until they have answered" in answer.content.decode()

    def test_keeps_what_was_typed(self, account: Account, client: Client) -> None:
        answer = client.post(reverse("accounts:pair", args=[account.pk]), {"phone": '+49 151 "1"'})
        assert answer.status_code == 429
        assert '<input type="hidden" name="phone" value="+49 151 &quot;1&quot;">' in answer.content.decode()

    def test_leaves_a_new_account_saved(self, account: Account, owner: User, client: Client) -> None:
        values = {"name": "New one", "profile": "whatsapp_established", "zone": "UTC", "service-account": "a"}
        values |= {"service-base_url": "http://127.0.0.1:9", "service-token": "t", "service-pairing": "no"}
        address = reverse("accounts:add", args=["whatsapp", "sandbox"])
        answer = client.post(address, values, follow=True)
        assert Account.objects.filter(owner=owner, name="New one").exists()
        assert "was saved, but is not connected yet" in answer.content.decode()

    def test_a_new_webhook_address_is_told_later(self, account: Account, client: Client) -> None:
        answer = client.post(reverse("accounts:renew_webhook", args=[account.pk]), follow=True)
        assert "The service learns it within a few minutes" in answer.content.decode()
        account.refresh_from_db()
        assert (account.reports_to, account.reports_tried_at) == ("", None)
