"""The pages of sources: adding one in two steps, its columns, what it says, and who may do what."""

from collections.abc import Iterator

import pytest
from django.test import Client
from pytest_django import Settings

from accounts.models import User
from queues.models import Item, Queue, Source
from tests.factories import QueueFactory, SourceFactory, SourceReadFactory, SourceRowFactory
from tests.queues.sources.notion_service import NotionService
from tests.queues.sources.notion_service import notion as run_notion
from tests.queues.sources.sheets_service import SheetsService, Tab
from tests.queues.sources.sheets_service import sheets as run_sheets
from tests.queues.sources.table import HEAD, add_page, fill_notion, fill_sheet, line, work

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis")]


@pytest.fixture
def notion(settings: Settings) -> Iterator[NotionService]:
    with run_notion() as service:
        settings.NOTION_URL = service.url
        fill_notion(service)
        yield service


@pytest.fixture
def sheets(settings: Settings) -> Iterator[SheetsService]:
    with run_sheets() as service:
        settings.GOOGLE_SHEETS_URL = settings.GOOGLE_TOKENS_URL = service.url
        yield service


@pytest.fixture
def queue(owner: User) -> Queue:
    return QueueFactory.create(owner=owner, by_email=True)


def as_(client: Client, person: User) -> Client:
    client.force_login(person)
    return client


def access_to_notion(notion: NotionService, queue: Queue, **changed: str) -> dict[str, str]:
    address = f"https://www.notion.so/Mails-{notion.database.replace('-', '')}?v=1"
    return {"queue": str(queue.pk), "kind": "notion", "address": address, "secret": notion.token, **changed}


def access_to_sheet(sheets: SheetsService, queue: Queue, **changed: str) -> dict[str, str]:
    address = f"https://docs.google.com/spreadsheets/d/{sheets.spreadsheet}/edit"
    given = {"queue": str(queue.pk), "kind": "sheet", "address": address, "secret": sheets.credentials}
    return given | changed


def test_a_notion_database_is_added_in_two_steps(
    client: Client, owner: User, queue: Queue, notion: NotionService
) -> None:
    add_page(notion, 1)
    as_(client, owner)
    answer = client.post("/sources/add/", access_to_notion(notion, queue))
    source = Source.objects.get()
    assert answer["Location"] == f"/sources/{source.pk}/columns/"
    page = client.get(answer["Location"])
    form = page.context["form"]
    assert form.initial["address"] == notion.named("Address").id
    assert form.initial["status"] == notion.named("Status").id
    assert notion.token not in page.content.decode()
    given = {name: value for name, value in form.initial.items() if value}
    assert client.post(answer["Location"], given)["Location"] == f"/sources/{source.pk}/"
    work(source)
    assert Item.objects.get().own_id
    shown = client.get(f"/sources/{source.pk}/").content.decode()
    assert "Read: " in shown
    assert notion.token not in shown


def test_of_several_sheets_a_person_chooses_one(
    client: Client, owner: User, queue: Queue, sheets: SheetsService
) -> None:
    sheets.tabs.append(Tab(5, "Letters", rows=[list(HEAD), line(1)]))
    as_(client, owner)
    answer = client.post("/sources/add/", access_to_sheet(sheets, queue))
    assert "There are several tables" in answer.content.decode()
    assert not Source.objects.exists()
    offered = dict(answer.context["form"].fields["table"].choices)
    letters = next(key for key, title in offered.items() if title == "Letters")
    client.post("/sources/add/", access_to_sheet(sheets, queue, table=letters))
    assert Source.objects.get().title == "Letters"


@pytest.mark.parametrize(
    ("changed", "field", "words"),
    [
        ({"address": "https://example.com/"}, "address", "neither the id nor the address"),
        ({"secret": "ntn_wrong"}, "secret", "refuses the token"),
        ({"secret": "a b"}, "secret", "not a token"),
        ({"kind": "sheet"}, "address", "not the address of a Google sheet"),
    ],
)
def test_what_is_wrong_is_said_at_its_field(
    client: Client,
    owner: User,
    queue: Queue,
    notion: NotionService,
    changed: dict[str, str],
    field: str,
    words: str,
) -> None:
    answer = as_(client, owner).post("/sources/add/", access_to_notion(notion, queue, **changed))
    assert words in str(answer.context["form"].errors[field])
    assert not Source.objects.exists()


def test_a_sheet_that_is_not_shared_names_the_account_to_share_it_with(
    client: Client, owner: User, queue: Queue, sheets: SheetsService
) -> None:
    sheets.shared = False
    answer = as_(client, owner).post("/sources/add/", access_to_sheet(sheets, queue))
    assert f"Share it with {sheets.account}, as an editor" in str(answer.context["form"].errors["address"])


def test_columns_that_cannot_be_used_are_refused(
    client: Client, owner: User, queue: Queue, sheets: SheetsService
) -> None:
    fill_sheet(sheets, line(1))
    as_(client, owner)
    place = client.post("/sources/add/", access_to_sheet(sheets, queue))["Location"]
    answer = client.post(place, {"own_id": "ID", "every_minutes": 5})
    assert "Choose the column with the address" in str(answer.context["form"].errors["address"])
    answer = client.post(place, {"own_id": "ID", "address": "To", "text": "To", "every_minutes": 5})
    assert "chosen twice" in str(answer.context["form"].errors["text"])
    assert Source.objects.get().mapping == {}


def test_a_person_uses_only_queues_that_they_manage(
    client: Client, sender: User, stranger: User, queue: Queue, notion: NotionService
) -> None:
    for person in (sender, stranger):
        as_(client, person).post("/sources/add/", access_to_notion(notion, queue))
        assert not Source.objects.exists()
    assert notion.asked == []


def test_the_page_says_what_was_read_and_what_is_wrong(client: Client, reader: User, queue: Queue) -> None:
    source = SourceFactory.create(queue=queue, stopped=True)
    SourceReadFactory.create(source=source, counts={"rows": 1_234, "added": 3})
    SourceRowFactory.create(source=source, own_id="7", problem="There is no text. Write one.")
    shown = as_(client, reader).get(f"/sources/{source.pk}/").content.decode()
    assert "Notion refuses the token." in shown
    assert "1,234" in shown
    assert "There is no text. Write one." in shown
    assert "Delete" not in shown
    assert source.title in client.get(f"/queues/{queue.pk}/").content.decode()
    listed = client.get("/sources/").content.decode()
    assert source.title in listed
    assert "Stopped" in listed


def test_a_new_token_is_tried_before_it_is_saved(
    client: Client, owner: User, queue: Queue, notion: NotionService
) -> None:
    as_(client, owner).post("/sources/add/", access_to_notion(notion, queue))
    source = Source.objects.get()
    answer = client.post(f"/sources/{source.pk}/access/", {"secret": "ntn_wrong"})
    assert "refuses the token" in answer.content.decode()
    notion.token = "ntn_other"
    client.post(f"/sources/{source.pk}/access/", {"secret": "ntn_other"})
    source.refresh_from_db()
    assert source.credentials["token"] == "ntn_other"


def test_reading_now_switching_and_deleting(client: Client, owner: User, queue: Queue) -> None:
    source = SourceFactory.create(queue=queue)
    page = f"/sources/{source.pk}/"
    as_(client, owner)
    client.post(f"{page}off/")
    answer = client.post(f"{page}read/", follow=True)
    assert "Switch it on first" in answer.content.decode()
    client.post(f"{page}on/")
    source.refresh_from_db()
    assert source.switched_off_at is None
    assert "Delete the source" in client.get(f"{page}delete/").content.decode()
    client.post(f"{page}delete/")
    assert not Source.objects.exists()


def test_without_a_queue_the_page_says_what_comes_first(client: Client, owner: User) -> None:
    assert "Add a queue first" in as_(client, owner).get("/sources/add/").content.decode()
