"""Every page of an account: the owner, a mate, a reader, a stranger, a visitor."""

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import Account, User

SEEN = ("page", "now")
FORMS = ("edit", "limits", "log_out", "archive")
POSTED = (
    "pause",
    "resume",
    "connect",
    "check",
    "log_out",
    "archive",
    "unarchive",
    "sync",
    "unlock",
    "renew_webhook",
)


def address(name: str, account: Account) -> str:
    return reverse(f"accounts:{name}", args=[account.pk])


@pytest.mark.parametrize("name", [*SEEN, *FORMS, "pair", "pair_now"])
def test_a_visitor_is_asked_to_log_in(client: Client, account: Account, name: str) -> None:
    response = client.get(address(name, account))
    assert response.status_code == 302
    assert response["Location"].startswith(reverse("login"))


@pytest.mark.parametrize("name", SEEN)
def test_whoever_may_see_it_sees_it_and_a_stranger_does_not(
    client: Client, account: Account, mate: User, reader: User, staff: User, stranger: User, name: str
) -> None:
    for person in (account.owner, mate, reader, staff):
        client.force_login(person)
        assert client.get(address(name, account)).status_code == 200
    client.force_login(stranger)
    assert client.get(address(name, account)).status_code == 404


@pytest.mark.parametrize("name", [*FORMS, "pair", "pair_now"])
def test_only_those_who_may_touch_it_get_its_forms(
    client: Client, account: Account, mate: User, reader: User, stranger: User, name: str
) -> None:
    for person, status in ((reader, 403), (stranger, 404)):
        client.force_login(person)
        assert client.get(address(name, account)).status_code == status
    client.force_login(mate)
    assert client.get(address(name, account)).status_code in {200, 302}


@pytest.mark.parametrize("name", [*POSTED, "edit", "limits", "pair"])
def test_only_those_who_may_touch_it_do_something_to_it(
    client: Client, account: Account, reader: User, stranger: User, name: str
) -> None:
    before = Account.objects.filter(pk=account.pk).values().get()
    for person, status in ((reader, 403), (stranger, 404)):
        client.force_login(person)
        assert client.post(address(name, account)).status_code == status
    assert Account.objects.filter(pk=account.pk).values().get() == before


@pytest.mark.parametrize("name", [name for name in POSTED if name not in FORMS])
def test_looking_changes_nothing(client: Client, account: Account, name: str) -> None:
    client.force_login(account.owner)
    assert client.get(address(name, account)).status_code == 405


def test_a_reader_sees_no_button_and_no_address(client: Client, account: Account, reader: User) -> None:
    client.force_login(reader)
    text = client.get(address("page", account)).content.decode()
    assert "Office phone" in text
    assert "Pause" not in text
    assert account.webhook["key"] not in text


def test_no_page_shows_a_secret(client: Client, account: Account) -> None:
    client.force_login(account.owner)
    for name in ("page", "now", "edit", "limits"):
        text = client.get(address(name, account)).content.decode()
        assert "a-token-nobody-sees" not in text
        assert account.webhook["secret"] not in text
