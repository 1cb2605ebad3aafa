"""The settings of notifications, in a browser: added, tested and read on a phone and on a wide screen."""

import os
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from accounts.models import User
from notices.models import NoticeAddress, Preferences
from tests.browser.conftest import NewPage
from tests.browser.test_look import axe_findings, sideways, visit
from tests.factories import NoticeAddressFactory, NoticeFactory, PreferencesFactory, TeamMateFactory

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

SETTINGS = "/notifications/settings/"


@pytest.fixture
def person(transactional_db: None) -> User:
    """A person with addresses in every state, a team, and somebody to tell next."""
    owner = TeamMateFactory.create(mate__username="nadia").mate
    TeamMateFactory.create(owner=owner, mate__username="benjamin", send=True)
    long = f"Mattermost at {'donaudampfschifffahrtsgesellschaft.' * 2}example.com"
    address = NoticeAddressFactory.create(person=owner, shown=long, last_sent_at=timezone.now())
    NoticeFactory.create(address=address, number=7)
    NoticeFactory.create(address=address, sent=True)
    NoticeAddressFactory.create(person=owner, mailbox=True, unconfirmed=True)
    NoticeAddressFactory.create(
        person=owner, shown="Slack", switched_off_at=timezone.now(), problem="no answer"
    )
    NoticeAddressFactory.create(
        person=owner,
        shown="Telegram",
        failing_since=timezone.now(),
        problem="the service refuses the key in the address (401)",
        retry_at=timezone.now() + timedelta(minutes=10),
    )
    PreferencesFactory.create(person=owner, quiet=True)
    return owner


def kept(page: Page, name: str) -> None:
    """Keep a picture where somebody wants to look at it."""
    if folder := os.environ.get("PICTURES"):
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 360), ("light", 360)])
def test_it_can_be_read_on_every_screen(new_page: NewPage, person: User, scheme: str, width: int) -> None:
    page = new_page(user=person, width=width, scheme=scheme, axe=True)
    address = NoticeAddress.objects.order_by("pk")[0]
    for path in (SETTINGS, f"{SETTINGS}{address.pk}/", "/notifications/"):
        visit(page, path)
        kept(page, f"{path.strip('/').replace('/', '-')}-{scheme}-{width}")
        assert sideways(page) == 0, path
        assert axe_findings(page) == [], path


def test_an_address_is_added_and_the_hours_are_saved(new_page: NewPage, transactional_db: None) -> None:
    mate = TeamMateFactory.create(mate__username="ben", manage=True)
    page = visit(new_page(user=mate.owner), "/notifications/")
    page.get_by_role("link", name="Settings").click()
    page.get_by_role("textbox", name="Address").fill("ntfys://ntfy.example.com/my-topic")
    page.get_by_label("Once a day, gathered").check()
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_role("heading", name="ntfy at ntfy.example.com")).to_be_visible()
    page.get_by_role("button", name="Send a test").click()
    expect(page.get_by_text("A test is on its way.")).to_be_visible()
    page.get_by_label("Quiet from").fill("22:00")
    page.get_by_label("Quiet until").fill("07:00")
    page.get_by_label("First person after you").select_option("ben")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    assert Preferences.objects.get(person=mate.owner).next_people == [mate.mate_id]
    assert NoticeAddress.objects.get().rhythm == "daily"
