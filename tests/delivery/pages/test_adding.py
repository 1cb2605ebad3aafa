"""Adding an account: the service in words, its form, and a first connection."""

import pytest
from django.test import Client
from django.urls import reverse
from django.utils.html import escape
from pytest_django import Settings

from accounts.models import Account, User
from delivery.transports import kinds
from tests.factories import AccountFactory


def form(credentials: dict[str, str], **changes: str) -> dict[str, str]:
    fields = {
        "name": "Sports phone",
        "profile": "whatsapp_careful",
        "zone": "Asia/Kuala_Lumpur",
        "own_address": "",
    }
    return fields | {f"service-{name}": value for name, value in credentials.items()} | changes


ADD = ("whatsapp", "sandbox")


@pytest.fixture
def person(client: Client, owner: User) -> User:
    client.force_login(owner)
    return owner


def test_every_kind_is_offered_under_each_of_its_channels(client: Client, person: User) -> None:
    text = client.get(reverse("accounts:choose")).content.decode()
    for name, kind in kinds().items():
        for channel in kind.channels:
            assert reverse("accounts:add", args=[channel, name]) in text
        assert escape(kind.about) in text


@pytest.mark.parametrize("name", kinds())
def test_every_kind_has_a_form_with_its_fields(client: Client, person: User, name: str) -> None:
    kind = kinds()[name]
    text = client.get(reverse("accounts:add", args=[min(kind.channels), name])).content.decode()
    for field in kind.credential_fields:
        assert f'name="service-{field.name}"' in text
        assert escape(field.label) in text


def test_the_sandbox_beside_this_is_offered_where_it_listens(
    client: Client, person: User, settings: Settings
) -> None:
    settings.SANDBOX_URL = "http://127.0.0.1:8765"
    assert b'value="http://127.0.0.1:8765"' in client.get(reverse("accounts:add", args=ADD)).content


def test_an_account_is_connected_as_soon_as_it_is_added(
    client: Client, person: User, credentials: dict[str, str], redis: object
) -> None:
    response = client.post(reverse("accounts:add", args=ADD), form(credentials), follow=True)
    account = Account.objects.get(owner=person)
    assert (account.status, account.profile, account.zone) == (
        "active",
        "whatsapp_careful",
        "Asia/Kuala_Lumpur",
    )
    assert account.credentials == credentials
    assert b"Sports phone is connected and ready to send." in response.content


def test_one_that_must_be_paired_leads_to_its_code(
    client: Client, person: User, credentials: dict[str, str], redis: object
) -> None:
    response = client.post(reverse("accounts:add", args=ADD), form(credentials | {"pairing": "yes"}))
    account = Account.objects.get(owner=person)
    assert response["Location"] == reverse("accounts:pair", args=[account.pk])
    text = client.get(response["Location"]).content.decode()
    assert "data:image/svg+xml" in text
    assert "Code 1 of 6." in text


def test_one_whose_service_is_away_is_kept_and_says_so(
    client: Client, person: User, credentials: dict[str, str], redis: object
) -> None:
    given = form(credentials | {"base_url": "http://127.0.0.1:9"})
    response = client.post(reverse("accounts:add", args=ADD), given, follow=True)
    assert b"Sports phone was saved, but is not connected." in response.content
    assert Account.objects.get(owner=person).status == "unpaired"


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"service-token": ""}, "Fill in this field."),
        ({"service-base_url": "ftp://x"}, "Address is not an http or https address."),
        ({"name": "Taken"}, "Another account on this channel has this name."),
        ({"name": ""}, "Fill in this field."),
        ({"profile": "linkedin"}, "This is not on the list."),
        ({"zone": "Mars/Olympus"}, "is not a time zone. Write it like Asia/Kuala_Lumpur"),
        ({"own_address": "nobody"}, "nobody"),
    ],
)
def test_what_is_wrong_is_said_and_secrets_are_not_sent_back(
    client: Client, person: User, credentials: dict[str, str], changes: dict[str, str], complaint: str
) -> None:
    AccountFactory.create(owner=person, name="Taken")
    response = client.post(reverse("accounts:add", args=ADD), form(credentials, **changes))
    text = response.content.decode()
    assert response.status_code == 200
    assert complaint in text
    assert credentials["token"] not in text
    assert Account.objects.filter(owner=person).count() == 1


def test_a_service_that_is_none_is_not_found(client: Client, person: User) -> None:
    for channel, kind in (("whatsapp", "pigeon"), ("email", "sandbox")):
        assert client.get(reverse("accounts:add", args=[channel, kind])).status_code == 404
