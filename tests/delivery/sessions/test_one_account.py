"""One session of a service belongs to one account."""

from importlib import import_module
from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.apps import apps
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from accounts.models import Account, User
from delivery import lifecycle
from delivery.sessions import archive, one_account
from delivery.sessions.one_account import session_key, why_taken
from tests.factories import AccountFactory, UserFactory

EVOLUTION = {"base_url": "http://127.0.0.1:9", "api_key": "a-secret-key", "instance": "north"}


def on_evolution(owner: User, name: str = "Parents phone", **changes: str) -> Account:
    account = AccountFactory.build(owner=owner, name=name, transport="evolution")
    one_account.enter(account, EVOLUTION | changes)
    account.save()
    return account


def form(**changes: str) -> dict[str, Any]:
    fields: dict[str, Any] = {"name": "Second phone", "profile": "whatsapp_careful", "zone": "UTC"}
    fields |= {"own_address": "", "hours-work_days": ["1"]}
    return fields | {f"service-{name}": value for name, value in (EVOLUTION | changes).items()}


@pytest.mark.parametrize(
    ("kind", "one", "other"),
    [
        ("evolution", EVOLUTION, EVOLUTION | {"api_key": "another"}),
        ("evolution", EVOLUTION, EVOLUTION | {"base_url": "HTTP://127.0.0.1:9/"}),
        ("waha", {"base_url": "http://waha:3000"}, {"base_url": "http://WAHA:3000/", "session": "default"}),
        ("waha", {"base_url": "https://w.example"}, {"base_url": "https://w.example:443"}),
        ("cloud_api", {"phone_id": "1", "token": "a"}, {"phone_id": "1", "token": "b"}),
        ("wassenger", {"device": "d"}, {"device": "d", "token": "b"}),
        (
            "unipile",
            {"base_url": "https://u:1", "account_id": "a"},
            {"base_url": "https://u:1", "account_id": "a"},
        ),
        ("matrix", {"base_url": "https://m", "user": "@a:m"}, {"base_url": "https://m", "user": "@a:m"}),
    ],
)
def test_what_names_the_same_session_has_the_same_key(
    kind: str, one: dict[str, str], other: dict[str, str]
) -> None:
    assert session_key(kind, one) == session_key(kind, other) != ""


@pytest.mark.parametrize(
    ("kind", "one", "other"),
    [
        ("evolution", EVOLUTION, EVOLUTION | {"instance": "south"}),
        ("evolution", EVOLUTION, EVOLUTION | {"base_url": "http://127.0.0.1:10"}),
        ("waha", {"base_url": "http://w", "session": "a"}, {"base_url": "http://w", "session": "b"}),
    ],
)
def test_what_names_another_session_has_another_key(
    kind: str, one: dict[str, str], other: dict[str, str]
) -> None:
    assert session_key(kind, one) != session_key(kind, other)


@pytest.mark.parametrize(
    ("kind", "credentials"),
    [
        ("evolution", {}),
        ("evolution", {"base_url": "ftp://x", "instance": "a"}),
        ("matrix", {"base_url": "https://m", "access_token": "t"}),  # whose, only the homeserver knows
        ("email", {"host": "mail.example", "user": "a"}),  # one mailbox may send under several names
        ("sandbox", {"base_url": "http://127.0.0.1", "account": "a"}),
        ("gone", {"base_url": "http://x"}),
    ],
)
def test_what_names_no_session_has_no_key(kind: str, credentials: dict[str, str]) -> None:
    assert session_key(kind, credentials) == ""


def test_one_s_own_account_is_named_and_another_owners_is_not(owner: User, stranger: User) -> None:
    on_evolution(owner)
    assert why_taken(Account(owner=owner, transport="evolution"), EVOLUTION).startswith(
        "Parents phone already uses"
    )
    told = why_taken(Account(owner=stranger, transport="evolution"), EVOLUTION)
    assert told == one_account.TAKEN
    assert "Parents phone" not in told
    assert why_taken(Account(owner=owner, transport="waha"), EVOLUTION) == ""


def test_the_form_for_a_new_account_refuses_it(client: Client, owner: User, stranger: User) -> None:
    on_evolution(owner)
    for who, sentence in ((owner, "Parents phone already uses this session"), (stranger, one_account.TAKEN)):
        client.force_login(who)
        response = client.post(reverse("accounts:add", args=["whatsapp", "evolution"]), form())
        assert response.status_code == 200
        assert sentence in response.content.decode()
    assert Account.objects.count() == 1


def test_the_form_of_an_account_refuses_it_and_keeps_its_own(
    client: Client, owner: User, redis: object
) -> None:
    on_evolution(owner)
    second = on_evolution(owner, "Second phone", instance="south")
    client.force_login(owner)
    edit = reverse("accounts:edit", args=[second.pk])
    assert "Parents phone already uses this session" in client.post(edit, form()).content.decode()
    assert client.post(edit, form(instance="south", api_key="")).status_code == 302
    assert client.post(edit, form(instance="west", api_key="")).status_code == 302
    second.refresh_from_db()
    assert second.session_key == session_key("evolution", EVOLUTION | {"instance": "west"})


def test_the_admin_refuses_it(client: Client, owner: User) -> None:
    on_evolution(owner)
    client.force_login(UserFactory.create(is_staff=True, is_superuser=True))
    given = {
        "owner": str(owner.pk),
        "name": "Second phone",
        "channel": "whatsapp",
        "transport": "evolution",
        "profile": "whatsapp_careful",
        "zone": "UTC",
        "work_days": ["1", "2", "4", "8", "16"],
        "new_credentials": '{"base_url": "http://127.0.0.1:9", "api_key": "k", "instance": "north"}',
        "limits-TOTAL_FORMS": "0",
        "limits-INITIAL_FORMS": "0",
    }
    response = client.post(reverse("admin:accounts_account_add"), given)
    assert response.status_code == 200
    assert "already uses this session" in response.content.decode()
    free = given | {"new_credentials": str(given["new_credentials"]).replace("north", "west")}
    assert client.post(reverse("admin:accounts_account_add"), free).status_code == 302
    assert Account.objects.get(name="Second phone").session_key


def test_two_forms_at_the_same_moment_make_one_account(
    client: Client, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_evolution(owner)
    monkeypatch.setattr(one_account, "why_taken", lambda *_: "")  # as the form saw it a moment ago
    client.force_login(owner)
    response = client.post(reverse("accounts:add", args=["whatsapp", "evolution"]), form())
    assert one_account.TAKEN in response.content.decode()
    assert Account.objects.count() == 1


def test_an_archived_account_gives_its_session_up_and_does_not_get_it_back_while_it_is_used(
    owner: User, redis: object
) -> None:
    first = on_evolution(owner)
    archive.archive(first, by=owner)
    second = on_evolution(owner, "Second phone")
    with pytest.raises(lifecycle.WrongStateError, match="Another account uses the session"):
        archive.unarchive(first, by=owner)
    archive.archive(second, by=owner)
    archive.unarchive(first, by=owner)
    first.refresh_from_db()
    assert first.archived_at is None


def test_accounts_from_before_get_their_session_and_the_oldest_keeps_a_shared_one(
    owner: User, settings: Settings
) -> None:
    def made(**values: Any) -> Account:
        return AccountFactory.create(owner=owner, transport="evolution", credentials=EVOLUTION, **values)

    archived, first, second = made(archived=True), made(), made()
    lost = made(name="Lost key")
    with_key = settings.ENCRYPTION_KEYS
    settings.ENCRYPTION_KEYS = [Fernet.generate_key().decode()]
    Account.objects.filter(pk=lost.pk).update(credentials={"base_url": "http://x", "instance": "lost"})
    settings.ENCRYPTION_KEYS = with_key
    migration = import_module("delivery.migrations.0014_sessions_of_accounts")
    migration.note_sessions(apps, None)
    keys = dict(Account.objects.values_list("pk", "session_key"))
    assert keys == {
        archived.pk: "",
        first.pk: session_key("evolution", EVOLUTION),
        second.pk: "",
        lost.pk: "",
    }
