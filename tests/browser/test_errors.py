"""The pages that nobody wants to see, and the one for who does not want to hear from us."""

from datetime import timedelta

import pytest
from django.template.loader import render_to_string
from playwright.sync_api import Page, Route, expect
from pytest_django import Settings

from accounts.models import Recipient
from accounts.unsubscribe import Links
from tests.browser.conftest import NewPage
from tests.browser.test_look import axe_findings, sideways, visit
from tests.factories import RecipientFactory

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
]

TEMPLATES = ("400", "403", "403_csrf", "404", "413", "500", "registration/locked")
LOCKED = {"failure_limit": 5, "username": "nadia", "cooloff_timedelta": timedelta(minutes=15)}


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 360)])
def test_every_error_fits_and_axe_finds_nothing_serious(new_page: NewPage, scheme: str, width: int) -> None:
    page = new_page(width=width, scheme=scheme, axe=True)

    def answer(route: Route) -> None:
        name = route.request.url.partition("/went-wrong/")[2]
        route.fulfill(body=render_to_string(f"{name}.html", LOCKED), content_type="text/html")

    page.route("**/went-wrong/**", answer)
    found = {}
    for name in TEMPLATES:
        visit(page, f"/went-wrong/{name}")
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        expect(page.locator("main a.button")).to_be_visible()
        found[name] = (sideways(page), axe_findings(page))
    assert {name: trouble for name, trouble in found.items() if trouble != (0, [])} == {}


def test_a_mistyped_address_leads_back_to_the_dashboard(new_page: NewPage) -> None:
    page: Page = new_page(troubled=True)
    page.goto("/nothing/")
    expect(page.get_by_role("heading", name="Page not found")).to_be_visible()
    page.get_by_role("link", name="Go to the dashboard").click()
    expect(page.get_by_role("heading", name="Welcome back")).to_be_visible()


@pytest.mark.parametrize(("scheme", "width"), [("light", 360), ("dark", 1280)])
def test_who_unsubscribes_is_asked_once_and_told(
    new_page: NewPage, settings: Settings, address: str, scheme: str, width: int
) -> None:
    settings.PUBLIC_URL = address
    reader = RecipientFactory.create(mailbox=True)
    link = Links(owner_id=reader.owner_id, channel=reader.channel).to(reader.address)
    page = visit(new_page(width=width, scheme=scheme, axe=True), link)
    assert (sideways(page), axe_findings(page)) == (0, [])
    page.get_by_role("button", name="Unsubscribe").click()
    expect(page.get_by_role("heading", name="You are unsubscribed")).to_be_visible()
    assert Recipient.objects.get(pk=reader.pk).opted_out_at is not None
    assert (sideways(page), axe_findings(page)) == (0, [])
