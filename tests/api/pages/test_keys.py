"""The page of one's own keys."""

import re

import pytest
from allauth.mfa.totp.internal.auth import TOTP, format_hotp_value, hotp_value, yield_hotp_counters_from_time
from django.contrib.messages import get_messages
from django.test import Client
from django.urls import reverse
from redis import Redis

from accounts.models import User
from api.models import ApiKey
from tests.factories import ApiKeyFactory

PAGE, SECRET = "/keys/", "JBSWY3DPEHPK3PXP"


@pytest.fixture
def own(client: Client, owner: User) -> Client:
    client.force_login(owner)
    return client


def test_a_new_key_is_shown_once_and_works(own: Client) -> None:
    answer = own.post(PAGE, {"name": "CRM", "scopes": ["read"], "last_day": ""})
    found = re.search(r"paceline_[0-9a-f]{12}_[\w-]{43}", answer.content.decode())
    assert found is not None
    assert "no-store" in answer["Cache-Control"]
    assert found[0] not in own.get(PAGE).content.decode()
    told = Client().get("/api/v1/me", headers={"Authorization": f"Bearer {found[0]}"})
    assert (told.status_code, told.json()["scopes"]) == (200, ["read"])


WANTED = {"name": "CRM", "scopes": ["read", "send"], "last_day": ""}


def test_the_password_is_asked_for_before_a_key_is_made(own: Client, owner: User, redis: Redis) -> None:
    owner.set_password("a-Long-pass-9")
    owner.save()
    own.force_login(owner)
    asked = own.post(PAGE, WANTED)
    assert asked["Location"] == f"{reverse('account_reauthenticate')}?next=%2Fkeys%2F"
    assert not ApiKey.objects.exists()
    wrong = own.post(asked["Location"], {"password": "something else"})
    assert (wrong.status_code, ApiKey.objects.exists()) == (200, False)
    made = own.post(asked["Location"], {"password": "a-Long-pass-9"})
    assert "paceline_" in made.content.decode()
    assert ApiKey.objects.get().scopes == ["read", "send"]
    assert "no-store" in made["Cache-Control"]
    assert "paceline_" in own.post(PAGE, WANTED | {"name": "Another"}).content.decode()


def test_a_second_factor_can_take_the_place_of_the_password(own: Client, owner: User, redis: Redis) -> None:
    owner.set_unusable_password()
    owner.save()
    TOTP.activate(owner, SECRET)
    own.force_login(owner)
    asked = own.post(PAGE, WANTED)
    assert asked["Location"].startswith(reverse("mfa_reauthenticate"))
    code = format_hotp_value(hotp_value(SECRET, next(iter(yield_hotp_counters_from_time()))))
    assert "paceline_" in own.post(asked["Location"], {"code": code}).content.decode()


def test_somebody_whom_a_provider_logs_in_is_not_locked_out(own: Client, owner: User) -> None:
    owner.set_unusable_password()
    owner.save()
    own.force_login(owner)
    assert "paceline_" in own.post(PAGE, WANTED).content.decode()


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ({"name": "", "scopes": ["read"]}, "required"),
        ({"name": "CRM"}, "Choose at least one."),
        ({"name": "CRM", "scopes": ["read"], "last_day": "2001-01-01"}, "Choose a later one."),
        ({"name": "CRM", "scopes": ["read"], "last_day": "9999-12-31"}, "too far away"),
    ],
)
def test_what_is_missing_is_said(own: Client, typed: dict[str, object], told: str) -> None:
    assert told in own.post(PAGE, typed).content.decode()
    assert not ApiKey.objects.exists()


def test_a_key_is_revoked_at_once(own: Client, owner: User) -> None:
    key = ApiKeyFactory.create(person=owner, name="CRM")
    asked = own.get(reverse("api_keys:revoke", args=[key.pk])).content.decode()
    assert "Revoke the key CRM?" in asked
    assert "It was never used." in asked
    assert ApiKey.objects.filter(revoked_at=None).exists()
    answer = own.post(reverse("api_keys:revoke", args=[key.pk]))
    assert [str(m) for m in get_messages(answer.wsgi_request)] == [
        "The key “CRM” was revoked. It no longer works."
    ]
    key.refresh_from_db()
    assert key.revoked_at is not None
    assert reverse("api_keys:revoke", args=[key.pk]) not in own.get(PAGE).content.decode()


def test_nobody_else_sees_or_revokes_it(client: Client, owner: User, mate: User, staff: User) -> None:
    key = ApiKeyFactory.create(person=owner, name="CRM of the owner")
    for person in (mate, staff):
        client.force_login(person)
        assert "CRM of the owner" not in client.get(PAGE).content.decode()
        assert client.post(reverse("api_keys:revoke", args=[key.pk])).status_code == 404


def test_staff_revoke_keys_in_the_admin(client: Client, owner: User, staff: User) -> None:
    key = ApiKeyFactory.create(person=owner)
    client.force_login(staff)
    chosen = {"action": "revoke", "_selected_action": [str(key.pk)]}
    asked = client.post(reverse("admin:api_apikey_changelist"), chosen).content.decode()
    assert "Programs that use them stop working at once." in asked
    key.refresh_from_db()
    assert key.revoked_at is None
    client.post(reverse("admin:api_apikey_changelist"), chosen | {"confirmed": "yes"})
    key.refresh_from_db()
    assert key.revoked_at is not None
