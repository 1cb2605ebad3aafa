"""Logging in through an OpenID Connect provider: a real one on this machine."""

from collections.abc import Iterator
from copy import deepcopy
from urllib.parse import urlsplit

import httpx
import pytest
from allauth.account.models import EmailAddress
from allauth.mfa.totp.internal.auth import TOTP
from allauth.socialaccount.models import SocialAccount
from django.conf import settings as django_settings
from django.test import Client
from django.urls import reverse
from oidc_provider_mock import User as Claimed
from oidc_provider_mock import run_server_in_thread
from pytest_django import Settings
from redis import Redis

from accounts.models import User
from tests.factories import OperatorFactory

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::authlib.deprecate.AuthlibDeprecationWarning"),
]
PEOPLE = (
    Claimed(sub="anna", claims={"email": "anna@example.com", "email_verified": True}),
    Claimed(sub="eve", claims={"email": "anna@example.com", "email_verified": False}),
    Claimed(sub="nobody", claims={"email": "nobody@example.com", "email_verified": True}),
)


@pytest.fixture
def provider(settings: Settings, redis: Redis) -> Iterator[str]:
    with run_server_in_thread(user_claims=PEOPLE) as server:
        url = f"http://localhost:{server.server_port}"
        app = {"provider_id": "oidc", "name": "SSO", "client_id": "paceline", "secret": "a-secret"}
        providers = deepcopy(django_settings.SOCIALACCOUNT_PROVIDERS)
        providers["openid_connect"]["APPS"] = [app | {"settings": {"server_url": url}}]
        settings.SOCIALACCOUNT_PROVIDERS, settings.OIDC_ISSUER = providers, url
        yield url


@pytest.fixture
def anna(db: None) -> User:
    person = OperatorFactory.create(username="anna", email="anna@example.com")
    EmailAddress.objects.create(user=person, email="anna@example.com", verified=True, primary=True)
    return person


def log_in(client: Client, sub: str) -> httpx.Response:
    """Go to the provider, say who we are there, and come back; return the answer to the last step."""
    start = client.get(reverse("openid_connect_login", args=["oidc"]))
    back = httpx.post(start["Location"], data={"sub": sub})
    address = urlsplit(back.headers["Location"])
    return client.get(f"{address.path}?{address.query}")  # type: ignore[return-value]


def is_in(client: Client) -> bool:
    return client.get(reverse("reminders:list")).status_code == 200


def test_the_button_is_there_where_it_is_configured(client: Client, provider: str) -> None:
    assert "Log in with" in client.get(reverse("login")).content.decode()


def test_a_person_with_the_same_confirmed_e_mail_is_logged_in(
    client: Client, provider: str, anna: User
) -> None:
    log_in(client, "anna")
    assert is_in(client)
    assert client.session["_auth_user_id"] == str(anna.pk)
    again = Client()
    EmailAddress.objects.filter(user=anna).update(verified=False)  # from now on the provider's id counts
    log_in(again, "anna")
    assert is_in(again)


def test_an_e_mail_that_the_provider_did_not_verify_takes_nothing_over(
    client: Client, provider: str, anna: User
) -> None:
    answer = log_in(client, "eve")
    assert "No account here yet" in answer.content.decode()
    assert not is_in(client)


def test_an_e_mail_that_was_not_confirmed_here_takes_nothing_over(
    client: Client, provider: str, anna: User
) -> None:
    EmailAddress.objects.filter(user=anna).update(verified=False)
    log_in(client, "anna")
    assert not is_in(client)


def test_nobody_new_gets_an_account(client: Client, provider: str, anna: User) -> None:
    log_in(client, "nobody")
    assert not is_in(client)
    assert User.objects.count() == 1


def test_a_second_factor_is_asked_for_as_well(client: Client, provider: str, anna: User) -> None:
    TOTP.activate(anna, "JBSWY3DPEHPK3PXP")
    assert log_in(client, "anna")["Location"] == reverse("mfa_authenticate")  # type: ignore[index]
    assert not is_in(client)


def test_a_deactivated_person_stays_out(client: Client, provider: str, anna: User) -> None:
    log_in(client, "anna")
    User.objects.filter(pk=anna.pk).update(is_active=False)
    again = Client()
    log_in(again, "anna")
    assert not is_in(again)


def test_a_link_of_another_site_connects_nothing(client: Client, provider: str, anna: User) -> None:
    client.force_login(anna)
    start = client.get(reverse("openid_connect_login", args=["oidc"]) + "?process=connect")
    back = httpx.post(start["Location"], data={"sub": "eve"})
    address = urlsplit(back.headers["Location"])
    assert client.get(f"{address.path}?{address.query}").status_code == 401
    assert not SocialAccount.objects.filter(user=anna).exists()
