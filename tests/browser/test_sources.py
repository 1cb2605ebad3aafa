"""Setting up a source in a browser, and its pages on a phone and on a desk."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect
from pytest_django import Settings
from redis import Redis

from accounts.models import User
from queues.models import Item, Queue, Source
from tests.browser.conftest import NewPage, Scheme
from tests.browser.test_look import axe_findings, sideways, visit
from tests.factories import (
    QueueFactory,
    SourceFactory,
    SourceReadFactory,
    SourceRowFactory,
    UserFactory,
)
from tests.queues.sources.notion_service import NotionService, notion
from tests.queues.sources.table import add_page, fill_notion, work

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
]


@pytest.fixture
def nadia(transactional_db: None, redis: Redis) -> User:
    return UserFactory.create(username="nadia")


@pytest.fixture
def queue(nadia: User) -> Queue:
    return QueueFactory.create(owner=nadia, by_email=True, name="Letters of autumn")


@pytest.fixture
def service(settings: Settings) -> Iterator[NotionService]:
    with notion() as found:
        settings.NOTION_URL = found.url
        fill_notion(found)
        yield found


@pytest.mark.parametrize("javascript", [True, False], ids=["with script", "without script"])
def test_a_database_is_set_up_read_and_switched_off(
    new_page: NewPage, nadia: User, queue: Queue, service: NotionService, javascript: bool
) -> None:
    good, wrong = add_page(service, 1), add_page(service, 2, Address="nobody")
    page = new_page(user=nadia, javascript=javascript)
    page.goto("/sources/")
    page.get_by_role("link", name="Add a source").click()
    page.get_by_label("Address").fill(service.database)
    page.get_by_label("Token or key").fill("ntn_wrong")
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_text("Notion refuses the token")).to_be_visible()
    page.get_by_label("Token or key").fill(service.token)
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("combobox", name="Recipient")).to_have_value(service.named("Address").id)
    expect(page.get_by_role("combobox", name="Status")).to_have_value(service.named("Status").id)
    page.get_by_role("button", name="Save and read").click()
    expect(page.get_by_text("The table is being read.")).to_be_visible()
    work(Source.objects.get())
    page.get_by_role("button", name="Read now").click()
    expect(page.get_by_role("cell", name="has no @")).to_be_visible()
    assert Item.objects.get().recipient.address == "p1@example.com"
    assert service.shown(good, "Status") == "Waiting"
    assert service.shown(wrong, "Status") == "Not taken"
    page.get_by_role("button", name="Switch off").click()
    expect(page.get_by_text("Switched off: nothing is read")).to_be_visible()
    page.get_by_role("link", name="Delete").click()
    page.get_by_label("Withdraw 1 message").check()
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_text("Source deleted. Items withdrawn: 1.")).to_be_visible()


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_its_pages_can_be_read_by_everybody(
    new_page: NewPage, nadia: User, queue: Queue, service: NotionService, width: int, scheme: Scheme
) -> None:
    source = SourceFactory.create(
        queue=queue,
        credentials={"token": service.token},
        place={"database": service.database, "data_source": service.data_source},
        stopped=True,
        missing=41,
    )
    SourceReadFactory.create_batch(3, source=source, counts={"rows": 1_234, "added": 3, "wrong": 2})
    SourceRowFactory.create(source=source, problem="Several rows have the id “A”. Give each its own.")
    SourceRowFactory.create(source=source, own_id="b" * 60, unwritten="Notion refuses it: locked.")
    page = new_page(user=nadia, width=width, scheme=scheme, axe=True)
    place = f"/sources/{source.pk}/"
    for address in ("/sources/", "/sources/add/", place, f"{place}columns/", f"{place}delete/"):
        visit(page, address)
        assert axe_findings(page) == [], address
        assert sideways(page) == 0, address
