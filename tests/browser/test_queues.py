"""Queues in a browser: made, filled from a file, an item changed and withdrawn."""

import pytest
from playwright.sync_api import Page, expect

from accounts.models import User
from queues.actions import put
from queues.entries import Entry
from queues.models import Item, Queue
from tests.browser.conftest import NewPage, Scheme
from tests.browser.test_look import axe_findings, sideways, visit
from tests.factories import AccountFactory, QueueFactory, QueueImportFactory, UserFactory

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis")]

FILE = b"id,phone,text\n1,+60127000001,Dear Anna\n2,nobody,Dear Nobody\n3,+60127000003,Dear Carl\n"


@pytest.fixture
def person(transactional_db: None) -> User:
    person = UserFactory.create(username="nadia")
    AccountFactory.create(owner=person, name="Main")
    return person


def test_a_queue_is_made_filled_changed_and_emptied(new_page: NewPage, person: User) -> None:
    page: Page = new_page(user=person)
    page.goto("/queues/new/")
    page.get_by_label("Name").fill("Invitations")
    page.get_by_label("Main").check()
    page.get_by_role("button", name="Make the queue").click()
    expect(page.get_by_role("heading", name="Invitations")).to_be_visible()
    page.get_by_role("link", name="Import a file").click()
    page.get_by_label("File").set_input_files({"name": "items.csv", "mimeType": "text/csv", "buffer": FILE})
    page.get_by_role("button", name="Upload").click()
    page.get_by_role("button", name="Check all rows").click()
    expect(page.get_by_text("not a phone number")).to_be_visible()
    page.get_by_role("button", name="Import 2 items").click()
    page.get_by_role("link", name="Show the queue").click()
    page.get_by_role("link", name="+60127000001").first.click()
    page.get_by_label("Text").fill("Dear Anna, once more")
    page.get_by_role("button", name="Save the changes").click()
    expect(page.get_by_text("The item was changed.")).to_be_visible()
    page.get_by_role("button", name="Withdraw").click()
    expect(page.get_by_text("was withdrawn")).to_be_visible()
    assert Item.objects.filter(withdrawn_at__isnull=False).count() == 1


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 360)])
def test_the_pages_of_queues_fit_and_the_navigation_is_one_row(
    new_page: NewPage, person: User, scheme: Scheme, width: int
) -> None:
    test_a_queue_is_made_filled_changed_and_emptied(new_page, person)
    queue, item = Queue.objects.get(), Item.objects.order_by("-pk")[0]
    page = new_page(user=person, scheme=scheme, width=width)
    paths = ("/queues/", "/queues/new/", f"/queues/{queue.pk}/", f"/queues/items/{item.pk}/")
    for path in (*paths, f"/queues/{queue.pk}/import/"):
        page.goto(path)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        tops = page.locator("nav.sections a").evaluate_all("all => all.map(each => each.offsetTop)")
        assert len(set(tops)) == 1


@pytest.fixture
def filled(person: User) -> Queue:
    """A queue with items of every length: waiting, planned, moved and withdrawn ones."""
    account = AccountFactory.create(owner=person, name="The main number of the office")
    queue = QueueFactory.create(owner=person, name="Invitations to the summer party", accounts=[account])
    entries = [
        Entry(own_id=f"row-{n}", address=f"+60127000{n:03}", name=f"Reader {n}", text="Dear reader, " * n)
        for n in range(1, 6)
    ]
    entries.append(Entry(own_id="x" * 200, address="+60127000999", text="W" * 400))
    put(queue, entries, source="file", by=None)
    Item.objects.filter(own_id="row-2").update(
        moved_why="Planned for 9:00, which is outside the delivery hours."
    )
    return queue


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_its_pages_can_be_read_by_everybody(
    new_page: NewPage, person: User, filled: Queue, width: int, scheme: Scheme
) -> None:
    job = QueueImportFactory.create(
        queue=filled,
        counts={"rows": 3, "bad": 1, "known": 1, "new": 1, "good": 2},
        problems=[["3", "nobody", "“nobody” is not a phone number."]],
        first=[["2", "+60127000001", "Dear Anna " * 8, "2026-11-30 09:30", "Main"]],
    )
    done = QueueImportFactory.create(queue=filled, done=True)
    item = Item.objects.get(own_id="row-2")
    place = f"/queues/{filled.pk}/"
    page = new_page(user=person, width=width, scheme=scheme, axe=True)
    for address in (
        *("/queues/", "/queues/new/", place, f"{place}?state=failed", f"{place}edit/", f"{place}items/add/"),
        *(f"{place}import/", f"/queues/items/{item.pk}/"),
        *(f"/queues/imports/{each.pk}/" for each in (job, done)),
    ):
        visit(page, address)
        assert axe_findings(page) == [], address
        assert sideways(page) == 0, address
