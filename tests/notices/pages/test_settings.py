"""The page where a person says how notifications reach them."""

from datetime import time, timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from accounts.models import User
from activity.models import Notification
from notices.models import Follow, Notice, NoticeAddress, Preferences
from notices.pages.forms import KINDS
from tests.factories import NoticeAddressFactory, NoticeFactory, TeamMateFactory
from tests.notices.services import Mailbox, Services

pytestmark = pytest.mark.django_db

PAGE = "/notifications/settings/"
HOURS = f"{PAGE}hours/"
CHOSEN = {"kinds": ["paused", "failed"], "rhythm": "at_once"}


@pytest.fixture
def at_the_page(client: Client, owner: User) -> Client:
    client.force_login(owner)
    return client


def text_of(client: Client, **more: Any) -> str:
    return client.get(PAGE, **more).content.decode()


def problem_with(client: Client, address: str) -> str:
    return client.post(PAGE, {"address": address, **CHOSEN}).content.decode()


def test_every_kind_has_a_sentence() -> None:
    assert set(KINDS) == set(Notification.Kind)


def test_the_list_of_notifications_leads_there(at_the_page: Client) -> None:
    assert PAGE in at_the_page.get("/notifications/").content.decode()


def test_a_service_is_added_tested_changed_and_deleted(at_the_page: Client, chat: Services) -> None:
    answer = at_the_page.post(PAGE, {"address": f"json://{chat.place}/top-secret", **CHOSEN}, follow=True)
    assert "Send a test to see that it arrives." in answer.content.decode()
    address = NoticeAddress.objects.get()
    assert "top-secret" not in answer.content.decode()
    at_the_page.post(f"{PAGE}{address.pk}/test/")
    assert Notice.objects.get().kind == "test"
    at_the_page.post(f"{PAGE}{address.pk}/", {"kinds": ["success"], "rhythm": "daily"})
    address.refresh_from_db()
    assert (address.kinds, address.rhythm) == (["success"], "daily")
    asked = at_the_page.get(f"{PAGE}{address.pk}/delete/").content.decode()
    assert "No more notifications are sent there." in asked
    assert NoticeAddress.objects.exists()
    at_the_page.post(f"{PAGE}{address.pk}/delete/")
    assert not NoticeAddress.objects.exists()


def test_a_mailbox_asks_for_its_code(at_the_page: Client, mails: Mailbox) -> None:
    answer = at_the_page.post(PAGE, {"address": "ann@example.com", **CHOSEN}, follow=True)
    assert "Code from the mail" in answer.content.decode()
    address = NoticeAddress.objects.get()
    answer = at_the_page.post(f"{PAGE}{address.pk}/confirm/", {"code": "nonsense"}, follow=True)
    assert "This is not the code" in answer.content.decode()


def test_what_cannot_be_added_is_said_at_its_field(at_the_page: Client) -> None:
    assert "neither an e-mail address nor one of these services" in problem_with(at_the_page, "syslog://")
    assert (
        "Choose at least one." in at_the_page.post(PAGE, {"address": "json://example.com/"}).content.decode()
    )


def test_an_installation_without_a_mail_server_says_so(at_the_page: Client, settings: Settings) -> None:
    settings.EMAIL_HOST = ""
    assert "This installation has no mail server" in text_of(at_the_page)
    settings.EMAIL_HOST = "mail.example.com"
    assert "This installation has no mail server" not in text_of(at_the_page)


def test_an_address_that_fails_says_since_when_why_and_when_it_is_tried_again(
    at_the_page: Client, owner: User
) -> None:
    address = NoticeAddressFactory.create(
        person=owner,
        failing_since=timezone.now(),
        problem="the service answered 500",
        retry_at=timezone.now() + timedelta(hours=1),
    )
    said = " ".join(text_of(at_the_page).split())
    assert "Failing since" in said
    assert "the service answered 500" in said
    assert "Next try" in said
    NoticeFactory.create(address=address, title="Rent is due waits", problem="the service answered 500")
    assert "Rent is due waits" in at_the_page.get(f"{PAGE}{address.pk}/").content.decode()


def test_a_code_that_could_not_be_sent_is_told(at_the_page: Client, owner: User) -> None:
    NoticeAddressFactory.create(
        person=owner,
        mailbox=True,
        unconfirmed=True,
        failing_since=timezone.now(),
        problem="the mail server answered 550",
    )
    assert "the mail server answered 550" in text_of(at_the_page)


def test_an_address_that_was_switched_off_is_switched_on_again(at_the_page: Client, owner: User) -> None:
    address = NoticeAddressFactory.create(person=owner, switched_off_at=timezone.now(), problem="no answer")
    assert "Switched off" in text_of(at_the_page)
    at_the_page.post(f"{PAGE}{address.pk}/on/")
    address.refresh_from_db()
    assert address.switched_off_at is None


def test_hours_and_the_next_people_are_saved_and_shown(at_the_page: Client, owner: User, mate: User) -> None:
    at_the_page.post(
        HOURS,
        {
            "quiet_from": "22:00",
            "quiet_until": "07:00",
            "daily_at": "09:30",
            "escalate_minutes": "10",
            "next_0": mate.pk,
        },
    )
    chosen = Preferences.objects.get(person=owner)
    assert (chosen.quiet_from, chosen.quiet_until, chosen.daily_at) == (time(22), time(7), time(9, 30))
    assert (chosen.escalate_minutes, chosen.next_people) == (10, [mate.pk])
    assert 'value="22:00"' in text_of(at_the_page)


@pytest.mark.parametrize(
    ("quiet", "problem"),
    [(("22:00", ""), "Enter both times, or none."), (("22:00", "22:00"), "Enter two different times.")],
)
def test_quiet_hours_need_two_different_times(
    at_the_page: Client, quiet: tuple[str, str], problem: str
) -> None:
    answer = at_the_page.post(HOURS, {"quiet_from": quiet[0], "quiet_until": quiet[1], "daily_at": "08:00"})
    assert problem in answer.content.decode()
    assert not Preferences.objects.exists()


def test_nobody_who_may_only_read_or_was_deactivated_can_be_the_next_person(
    at_the_page: Client, owner: User, mate: User, reader: User
) -> None:
    User.objects.filter(pk=mate.pk).update(is_active=False)
    assert "Nobody in your team may decide" in text_of(at_the_page)
    at_the_page.post(HOURS, {"daily_at": "08:00", "next_0": reader.pk})
    assert Preferences.objects.get().next_people == []


def test_a_mate_follows_an_owner_and_nobody_else(client: Client, owner: User, reader: User) -> None:
    stranger = TeamMateFactory.create().owner
    client.force_login(reader)
    client.post(HOURS, {"daily_at": "08:00", "follows": [owner.pk]})
    assert Follow.objects.get().owner == owner
    client.post(HOURS, {"daily_at": "08:00", "follows": [stranger.pk]})
    assert not Follow.objects.filter(owner=stranger).exists()
    client.post(HOURS, {"daily_at": "08:00"})
    assert not Follow.objects.exists()


def test_addresses_are_their_persons_alone(
    client: Client, owner: User, mate: User, reader: User, stranger: User, staff: User
) -> None:
    address = NoticeAddressFactory.create(person=owner)
    for person in (mate, reader, stranger, staff):
        client.force_login(person)
        assert str(address) not in text_of(client)
        assert client.get(f"{PAGE}{address.pk}/").status_code == 404
        assert client.post(f"{PAGE}{address.pk}/delete/").status_code == 404
    assert NoticeAddress.objects.exists()


def test_an_unknown_action_is_not_found(at_the_page: Client, owner: User) -> None:
    address = NoticeAddressFactory.create(person=owner)
    assert at_the_page.post(f"{PAGE}{address.pk}/explode/").status_code == 404
