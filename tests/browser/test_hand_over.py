"""Handing a paused run over, in a browser: from its banner to the forecasts, and back."""

import pytest
from playwright.sync_api import expect
from redis import Redis

from accounts.models import Account, User
from delivery import lifecycle
from delivery.models import Run
from delivery.states import AccountStatus
from reminders.fire import fire
from tests.browser.conftest import NewPage
from tests.browser.test_look import axe_findings, sideways, visit
from tests.browser.test_notices import kept
from tests.factories import (
    AccountFactory,
    ContactFactory,
    OperatorFactory,
    RecipientFactory,
    ReminderFactory,
)

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def person(transactional_db: None) -> User:
    return OperatorFactory.create(username="nadia")


@pytest.fixture
def run(person: User, redis: Redis) -> Run:
    """A run that its flagged account has stopped, and two accounts that could take it."""
    office = AccountFactory.create(owner=person, name="Office phone")
    AccountFactory.create(owner=person, name="Shop phone")
    AccountFactory.create(owner=person, name="Second phone of the north-western branch office")
    people = RecipientFactory.create_batch(5, owner=person)
    ContactFactory.create(recipient=people[0], account=office)
    made = fire(
        ReminderFactory.create(
            owner=person, name="Rent is due", accounts=[office], recipients=people, around_the_clock=True
        )
    )
    lifecycle.stop_account(office, status=AccountStatus.FLAGGED, reason="The service blocked it.")
    made.refresh_from_db()
    return made


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 360)])
def test_it_can_be_read_on_every_screen(
    new_page: NewPage, person: User, run: Run, scheme: str, width: int
) -> None:
    page = new_page(user=person, width=width, scheme=scheme, axe=True)
    office = Account.objects.get(name="Office phone")
    for path in (f"/runs/{run.pk}/", f"/runs/{run.pk}/hand-over", f"/accounts/{office.pk}/hand-over/"):
        visit(page, path)
        kept(page, f"{path.strip('/').replace('/', '-')}-{scheme}-{width}")
        assert sideways(page) == 0, path
        assert axe_findings(page) == [], path


def test_a_paused_run_is_handed_over_from_its_banner(new_page: NewPage, person: User, run: Run) -> None:
    page = visit(new_page(user=person), f"/runs/{run.pk}/")
    page.get_by_role("link", name="Hand over").first.click()
    expect(page.get_by_role("heading", name="Hand over the rest of Rent is due")).to_be_visible()
    page.get_by_label("Shop phone").check()
    page.get_by_label("Second phone").uncheck()
    page.get_by_label("Also people who have talked").check()
    page.get_by_role("button", name="Show the forecasts").click()
    expect(page.get_by_text("5 messages to Shop phone.")).to_be_visible()
    page.get_by_role("button", name="Hand over as shown").click()
    expect(page.get_by_text("“Rent is due” was handed over.")).to_be_visible()
    run.refresh_from_db()
    assert run.status == "running"
