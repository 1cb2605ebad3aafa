"""Whoever holds the link may opt out, and nobody else; opening it changes nothing."""

import pytest
from django.test import Client
from pytest_django import Settings

from accounts.models import ConsentChange, Recipient, User
from accounts.unsubscribe import Links, links_from
from tests.factories import AccountFactory, RecipientFactory

HERE = "https://paceline.example"


@pytest.fixture(autouse=True)
def public_url(settings: Settings) -> None:
    settings.PUBLIC_URL = HERE


@pytest.fixture
def reader_of_mail(owner: User) -> Recipient:
    return RecipientFactory.create(owner=owner, mailbox=True, address="zoë+list@xn--bcher-kva.example")


def path_to(recipient: Recipient) -> str:
    link = Links(owner_id=recipient.owner_id, channel=recipient.channel).to(recipient.address)
    assert link.startswith(f"{HERE}/unsubscribe/")
    return link.removeprefix(HERE)


def is_out(recipient: Recipient) -> bool:
    return Recipient.objects.get(pk=recipient.pk).opted_out_at is not None


def test_a_mail_program_unsubscribes_with_one_post_and_no_cookie(reader_of_mail: Recipient) -> None:
    client = Client(enforce_csrf_checks=True)
    response = client.post(path_to(reader_of_mail), {"List-Unsubscribe": "One-Click"})

    assert response.status_code == 200
    assert "You are unsubscribed" in response.content.decode()
    assert is_out(reader_of_mail)
    assert [change.how for change in reader_of_mail.consent_changes.all()] == [
        "Followed the unsubscribe link."
    ]


def test_opening_the_link_asks_and_changes_nothing(client: Client, reader_of_mail: Recipient) -> None:
    response = client.get(path_to(reader_of_mail))

    page = response.content.decode()
    assert "Unsubscribe?" in page
    assert reader_of_mail.address in page
    assert not is_out(reader_of_mail)
    assert response["X-Robots-Tag"] == "noindex"
    assert "no-store" in response["Cache-Control"]


def test_pressing_twice_is_recorded_once(client: Client, reader_of_mail: Recipient) -> None:
    for _ in range(2):
        assert client.post(path_to(reader_of_mail)).status_code == 200
    assert ConsentChange.objects.count() == 1
    assert "You are unsubscribed" in client.get(path_to(reader_of_mail)).content.decode()


def test_only_the_recipient_of_that_operator_and_channel_is_meant(
    client: Client, reader_of_mail: Recipient
) -> None:
    of_another = RecipientFactory.create(mailbox=True, address=reader_of_mail.address)
    client.post(path_to(reader_of_mail))
    assert not is_out(of_another)


@pytest.mark.django_db
@pytest.mark.parametrize("token", ["x", "eyJ9.abc", "W10.W10", "%00", "a.b.c"])
def test_a_link_that_we_never_made_leads_nowhere(client: Client, token: str) -> None:
    assert client.post(f"/unsubscribe/{token}").status_code == 404


def test_a_link_with_another_address_in_it_leads_nowhere(client: Client, reader_of_mail: Recipient) -> None:
    signature = path_to(reader_of_mail).rpartition(".")[2]
    other = RecipientFactory.create(owner=reader_of_mail.owner, mailbox=True)
    forged = f"{path_to(other).rpartition('.')[0]}.{signature}"
    assert client.post(forged).status_code == 404
    assert not is_out(other)


def test_the_link_of_a_recipient_who_was_deleted_leads_nowhere(
    client: Client, reader_of_mail: Recipient
) -> None:
    path = path_to(reader_of_mail)
    reader_of_mail.delete()
    assert client.get(path).status_code == 404


def test_only_e_mail_has_links(owner: User, reader_of_mail: Recipient) -> None:
    links = links_from(AccountFactory.create(owner=owner, by_email=True))
    assert links is not None
    assert links(reader_of_mail.address) == HERE + path_to(reader_of_mail)
    assert links_from(AccountFactory.create(owner=owner)) is None


def test_without_a_public_address_there_is_no_link(reader_of_mail: Recipient, settings: Settings) -> None:
    settings.PUBLIC_URL = ""
    assert Links(owner_id=1, channel="email").to(reader_of_mail.address) == ""
