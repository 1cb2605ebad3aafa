"""The audit log and the erasure of a person, in a browser."""

import pytest
from playwright.sync_api import expect

from accounts.models import Recipient, User
from accounts.recipients import consent
from accounts.recipients.change import change
from tests.browser.conftest import NewPage
from tests.browser.test_look import axe_findings, sideways, visit
from tests.factories import EntryFactory, RecipientFactory, UserFactory

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
LONG = "Wohnungseigentümergemeinschaft Donaudampfschifffahrtsgesellschaft"
WAYS = pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 360)])


@pytest.fixture
def person(transactional_db: None) -> User:
    """A person with some entries in the log."""
    person = UserFactory.create(username="nadia")
    EntryFactory.create(
        owner=person, thing_name=LONG, before={"per_day": None}, after={"per_day": 20, "text": LONG * 3}
    )
    EntryFactory.create(owner=person, door="key", via="CRM (paceline_0123456789ab…)", action="run.cancel")
    EntryFactory.create(
        owner=person, actor=None, actor_name="", door="command", via="manage.py stop_sending by root"
    )
    return person


@pytest.fixture
def recipient(person: User) -> Recipient:
    recipient: Recipient = RecipientFactory.create(owner=person, name="Annabel Lee")
    change(recipient, name="Annabel Lee-Poe", by=person)
    consent.opt_out(recipient, how="Asked by phone", by=person)
    return recipient


@WAYS
def test_the_log_and_the_pages_of_a_person_fit_and_can_be_read_by_all(
    new_page: NewPage, person: User, recipient: Recipient, scheme: str, width: int
) -> None:
    page = new_page(user=person, width=width, scheme=scheme, axe=True)
    found = {}
    for path in ("/audit/", "/audit/?what=account&thing=12%3F", f"/recipients/{recipient.pk}/erase"):
        visit(page, path)
        found[path] = [*axe_findings(page), *(["too wide"] if sideways(page) else [])]
    assert not any(found.values()), found


def test_a_person_is_erased_after_the_name_was_typed(
    new_page: NewPage, person: User, recipient: Recipient
) -> None:
    page = visit(new_page(user=person), f"/recipients/{recipient.pk}/")
    page.get_by_role("link", name="Erase").click()
    page.get_by_label("Type").fill("somebody else")
    page.get_by_role("button", name="Erase").click()
    expect(page.get_by_text("The name does not match.")).to_be_visible()
    page.get_by_label("Type").fill("Annabel Lee-Poe")
    page.get_by_role("button", name="Erase").click()
    expect(page.get_by_text("Everything was erased")).to_be_visible()
    visit(page, "/audit/?thing=recipient")
    expect(page.get_by_role("rowheader", name="erased a recipient")).to_be_visible()
    expect(page.get_by_text("Annabel")).to_have_count(0)
