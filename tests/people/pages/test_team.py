"""The pages of a team, and of an invitation."""

import re

import pytest
from django.core import mail
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from accounts.models import Role, TeamMate, User
from people import team
from people.models import Invitation
from tests.factories import AccountFactory

pytestmark = pytest.mark.django_db
GIVEN = {"email": "new@example.com", "role": "send", "days": "7"}
NEW = {"username": "newcomer", "password1": "a-Long-pass-9", "password2": "a-Long-pass-9"}


@pytest.fixture
def mails(settings: Settings) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    settings.EMAIL_HOST, settings.DEFAULT_FROM_EMAIL = "mail.example.com", "paceline@example.com"
    settings.PUBLIC_URL = "https://paceline.example.com"


def logged_in(person: User) -> Client:
    client = Client()
    client.force_login(person)
    return client


def test_without_mail_the_address_is_shown_once(owner: User) -> None:
    client = logged_in(owner)
    text = client.post(reverse("people:team"), GIVEN).content.decode()
    address = re.search(r"http://testserver(/join/[^<]+)", text)
    assert address is not None
    assert address[1] not in client.get(reverse("people:team")).content.decode()
    newcomer = Client()
    assert "Join the team of owner" in newcomer.get(address[1]).content.decode()
    assert newcomer.post(address[1], NEW).status_code == 302
    assert TeamMate.objects.get(owner=owner).mate.username == "newcomer"
    assert newcomer.get(reverse("reminders:list")).status_code == 200
    assert Client().get(address[1]).status_code == 410


def test_with_mail_the_address_is_in_the_mail_alone(owner: User, mails: None) -> None:
    client = logged_in(owner)
    response = client.post(
        reverse("people:team"), GIVEN, HTTP_HOST="testserver", HTTP_X_FORWARDED_HOST="evil.example"
    )
    assert response.status_code == 302
    (sent,) = mail.outbox
    assert sent.to == ["new@example.com"]
    assert "https://paceline.example.com/join/" in str(sent.body)
    assert "evil" not in str(sent.body)
    assert Invitation.objects.get().mailed


def test_looking_at_an_invitation_accepts_nothing(owner: User, stranger: User) -> None:
    token = team.invite(owner, email="new@example.com", role=Role.READ, days=1, by=owner).token
    client = logged_in(stranger)
    assert "Join as stranger" in client.get(reverse("people:join", args=[token])).content.decode()
    assert not TeamMate.objects.filter(mate=stranger).exists()
    client.post(reverse("people:join", args=[token]))
    assert TeamMate.objects.get(mate=stranger).role == Role.READ


def test_a_weak_password_makes_no_account_and_uses_nothing_up(owner: User) -> None:
    token = team.invite(owner, email="new@example.com", role=Role.READ, days=1, by=owner).token
    weak = NEW | {"password1": "12345", "password2": "12345"}
    assert Client().post(reverse("people:join", args=[token]), weak).status_code == 200
    assert not User.objects.filter(username="newcomer").exists()
    assert team.find(token) is not None


@pytest.mark.parametrize("name", ["role", "remove"])
def test_a_membership_of_others_is_not_found(owner: User, reader: User, stranger: User, name: str) -> None:
    share = TeamMate.objects.get(owner=owner, mate=reader)
    response = logged_in(stranger).post(reverse(f"people:{name}", args=[share.pk]), {"role": "manage"})
    assert response.status_code == 404


def test_a_reader_cannot_raise_their_own_role(owner: User, reader: User) -> None:
    share = TeamMate.objects.get(owner=owner, mate=reader)
    response = logged_in(reader).post(reverse("people:role", args=[share.pk]), {"role": "manage"})
    assert response.status_code == 403
    share.refresh_from_db()
    assert share.role == Role.READ


def test_a_manager_opens_the_team_of_the_owner_and_others_do_not(
    owner: User, mate: User, sender: User, stranger: User
) -> None:
    address = f"{reverse('people:team')}?of={owner.pk}"
    assert "Team of owner" in logged_in(mate).get(address).content.decode()
    for person in (sender, stranger):
        assert logged_in(person).get(address).status_code == 404
        assert logged_in(person).post(address, GIVEN).status_code == 404


def test_a_role_that_is_changed_holds_at_the_next_request(owner: User, mate: User) -> None:
    account = AccountFactory.create(owner=owner)
    client = logged_in(mate)
    assert client.get(reverse("accounts:edit", args=[account.pk])).status_code == 200
    share = TeamMate.objects.get(owner=owner, mate=mate)
    logged_in(owner).post(reverse("people:role", args=[share.pk]), {"role": "send"})
    assert client.get(reverse("accounts:edit", args=[account.pk])).status_code == 403
    asked = logged_in(owner).get(reverse("people:remove", args=[share.pk])).content.decode()
    assert f"{mate} loses access" in asked
    assert client.get(reverse("accounts:page", args=[account.pk])).status_code == 200
    logged_in(owner).post(reverse("people:remove", args=[share.pk]))
    assert client.get(reverse("accounts:page", args=[account.pk])).status_code == 404


def test_handing_over_logs_out_for_good(owner: User, reader: User) -> None:
    client, other = logged_in(owner), logged_in(owner)
    wrong = client.post(reverse("people:hand_over"), {"to": reader.pk, "typed": "somebody"})
    assert "not your username" in wrong.content.decode()
    client.post(reverse("people:hand_over"), {"to": reader.pk, "typed": "owner"})
    for each in (client, other):
        assert each.get(reverse("reminders:list")).status_code == 302
