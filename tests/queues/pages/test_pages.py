"""The pages of queues and items."""

from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from accounts.models import User
from audit.models import Entry as AuditEntry
from delivery.models import Run, RunTarget
from queues.actions import put
from queues.models import Item, Queue, QueueImport
from tests.factories import AccountFactory, MediaFactory, QueueFactory
from tests.queues.test_actions import entry, item_of, states, text_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis")]


@pytest.fixture
def queue(owner: User, client: Client) -> Queue:
    client.force_login(owner)
    return QueueFactory.create(owner=owner, accounts=[AccountFactory.create(owner=owner, name="Main")])


def take(queue: Queue, count: int = 3) -> None:
    put(queue, [entry(n) for n in range(1, count + 1)], source="page", by=None)


def page(client: Client, at: str, *args: object, **given: Any) -> str:
    answer = client.get(reverse(f"queues:{at}", args=args), given)
    assert answer.status_code == 200
    return answer.content.decode()


def post(client: Client, at: str, *args: object, **given: Any) -> str:
    return client.post(reverse(f"queues:{at}", args=args), given, follow=True).content.decode()


def test_a_queue_is_made_and_its_settings_are_changed(owner: User, client: Client) -> None:
    client.force_login(owner)
    account = AccountFactory.create(owner=owner)
    given = {
        "name": "Invitations",
        "pace": "steady",
        "senders": [account.pk],
        "window_start_hour": 9,
        "window_end_hour": 18,
        "send_days": [1, 2, 4, 8, 16],
        "zone": "Europe/Berlin",
        "priority": 0,
    }
    assert "Invitations" in post(client, "new", **given)
    queue = Queue.objects.get()
    assert (queue.send_days, list(queue.accounts.all())) == (0b11111, [account])
    assert "The settings were saved." in post(client, "edit", queue.pk, **given | {"window_end_hour": 17})
    queue.refresh_from_db()
    assert queue.window_end_hour == 17
    assert "must start before they end" in post(client, "edit", queue.pk, **given | {"window_end_hour": 8})
    recorded = AuditEntry.objects.filter(thing_type="queue").order_by("pk")
    assert list(recorded.values_list("action", flat=True)) == ["queue.added", "queue.changed"]


def test_new_hours_count_for_items_that_wait(queue: Queue, client: Client) -> None:
    take(queue)
    given = {
        "name": "Other",
        "pace": "planned",
        "senders": [queue.accounts.get().pk],
        "window_start_hour": 0,
        "window_end_hour": 23,
        "send_days": [1, 2, 4, 8, 16, 32, 64],
        "zone": "UTC",
        "priority": 0,
    }
    post(client, "edit", queue.pk, **given)
    assert Run.objects.get().window_end_hour == 23


def test_the_page_shows_items_with_their_states_and_finds_them(queue: Queue, client: Client) -> None:
    take(queue)
    assert "Text 1" in page(client, "page", queue.pk)
    assert "Text 1" not in page(client, "page", queue.pk, state="sent")
    assert "+60127000002" in page(client, "page", queue.pk, q="row-2")
    assert "+60127000001" not in page(client, "page", queue.pk, q="row-2")
    assert queue.name in page(client, "list")


def test_a_long_queue_is_read_page_by_page_with_few_queries(
    queue: Queue, client: Client, django_assert_max_num_queries: Any
) -> None:
    take(queue, 120)
    first = page(client, "page", queue.pk)
    assert 'rel="next"' in first
    with django_assert_max_num_queries(50):
        page(client, "page", queue.pk)


def test_an_item_is_added_once_whatever_is_clicked(queue: Queue, client: Client) -> None:
    given = {"key": "k-1", "address": "+60127000001", "text": "Hello", "priority": 0}
    assert "The item was added." in post(client, "add", queue.pk, **given)
    post(client, "add", queue.pk, **given)
    assert Item.objects.count() == 1
    said = post(client, "add", queue.pk, **given | {"key": "k-2", "address": "nobody"})
    assert "not a phone number" in said
    assert Item.objects.count() == 1


def test_an_item_is_changed_and_withdrawn_on_its_page(queue: Queue, client: Client) -> None:
    take(queue, 1)
    item = item_of(queue)
    given = {
        "address": item.recipient.address,
        "text": "Better",
        "priority": 1,
        "planned_at": "2027-01-05T10:30",
    }
    assert "The item was changed." in post(client, "item", item.pk, **given)
    item = item_of(queue)
    assert (text_of(item), item.target.run.priority) == ("Better", 1)
    assert item.planned_at is not None
    assert item.planned_at.isoformat() == "2027-01-05T10:30:00+00:00"
    assert "was withdrawn" in post(client, "item_withdraw", item.pk)
    assert states(queue) == ["withdrawn"]
    assert "begun or ended already" in post(client, "item_withdraw", item.pk)


def test_an_item_keeps_its_files_when_its_text_is_changed_on_its_page(
    owner: User, queue: Queue, client: Client
) -> None:
    files = MediaFactory.create_batch(2, owner=owner)
    put(queue, [entry(1, media=[file.pk for file in files])], source="page", by=None)
    item = item_of(queue)
    given = {"address": item.recipient.address, "text": "Better", "priority": 0}
    assert "The item was changed." in post(client, "item", item.pk, **given)
    parts = item_of(queue).content.parts
    assert parts is not None
    assert [part["sha256"] for part in parts] == [file.sha256 for file in files]
    assert parts[0]["text"] == "Better"


def test_an_item_that_has_begun_is_shown_and_not_changed(queue: Queue, client: Client) -> None:
    take(queue, 1)
    item = item_of(queue)
    RunTarget.objects.update(attempts=1)
    given = {"address": item.recipient.address, "text": "Better", "priority": 0}
    assert "It has begun to be sent" in post(client, "item", item.pk, **given)
    assert text_of(item_of(queue)) == "Text 1"


def test_chosen_items_are_planned_and_withdrawn_together(queue: Queue, client: Client) -> None:
    take(queue)
    first, second, third = Item.objects.order_by("pk").values_list("pk", flat=True)
    said = post(
        client, "change_many", queue.pk, item=[first, second], do="replan", planned_at="2027-01-05T10:30"
    )
    assert "2 items were planned again." in said
    assert "1 item was withdrawn." in post(client, "change_many", queue.pk, item=[third], do="withdraw")
    assert states(queue) == ["planned", "planned", "withdrawn"]
    assert "Choose some items first." in post(client, "change_many", queue.pk, do="withdraw")


def test_a_queue_is_paused_resumed_and_canceled(queue: Queue, client: Client) -> None:
    take(queue)
    assert "was paused" in post(client, "steer", queue.pk, do="pause")
    assert Run.objects.get().status == "paused"
    assert "was resumed" in post(client, "steer", queue.pk, do="resume")
    assert Run.objects.get().status == "running"
    assert "3 items will not be sent" in post(client, "steer", queue.pk, do="cancel")
    assert "was canceled" in post(client, "steer", queue.pk, do="cancel", confirmed="1")
    assert states(queue) == ["skipped"] * 3
    assert "was archived" in post(client, "steer", queue.pk, do="archive")


FILE = b"""id,email,subject,text,planned send at,sender
1,+60 12-700 0001,,Dear Anna,2027-01-05 10:30,Main
2,nobody,,Dear Nobody,,
3,+60 12-700 0003,,,,
4,+60 12-700 0004,,Dear Dan,tomorrow,
5,+60 12-700 0005,,Dear Eve,,Somebody
6,+60 12-700 0006,,Dear Fay,,
6,+60 12-700 0007,,Dear Gus,,
"""


def imported(queue: Queue, client: Client, content: bytes = FILE) -> QueueImport:
    file = SimpleUploadedFile("items.csv", content)
    client.post(reverse("queues:upload", args=[queue.pk]), {"file": file})
    job = QueueImport.objects.latest("pk")
    chosen = {f"means_{place}": column["means"] for place, column in enumerate(job.columns)}
    client.post(reverse("queues:import_columns", args=[job.pk]), {"header": "on", **chosen})
    job.refresh_from_db()
    return job


def test_a_file_is_checked_and_nothing_is_saved_before_it_is_confirmed(queue: Queue, client: Client) -> None:
    job = imported(queue, client)
    assert (job.status, job.counts["good"], job.counts["bad"]) == ("checked", 2, 5)
    assert Item.objects.count() == 0
    said = page(client, "import_job", job.pk)
    for reason in (
        "not a phone number",
        "There is no text",
        "not a date and time",
        "not an account",
        "An earlier row",
    ):
        assert reason in said
    post(client, "import_confirm", job.pk)
    job.refresh_from_db()
    assert (job.status, job.counts["added"]) == ("done", 2)
    assert sorted(Item.objects.values_list("own_id", flat=True)) == ["1", "6"]
    assert states(queue) == ["planned", "waiting"]


def test_the_same_file_twice_makes_nothing_twice(queue: Queue, client: Client) -> None:
    for _ in range(2):
        post(client, "import_confirm", imported(queue, client).pk)
    assert Item.objects.count() == 2
    last = QueueImport.objects.latest("pk")
    assert (last.counts["added"], last.counts["unchanged"]) == (0, 2)


def test_rows_without_an_own_id_are_known_by_their_content(queue: Queue, client: Client) -> None:
    content = b"phone,text\n+60127000001,Hi\n+60127000001,Hi\n+60127000002,Hi\n"
    for _ in range(2):
        post(client, "import_confirm", imported(queue, client, content).pk)
    assert Item.objects.count() == 3


def test_a_changed_row_changes_its_item(queue: Queue, client: Client) -> None:
    post(client, "import_confirm", imported(queue, client).pk)
    post(client, "import_confirm", imported(queue, client, FILE.replace(b"Dear Anna", b"Dear Ann")).pk)
    assert text_of(item_of(queue, "1")) == "Dear Ann"


def test_a_discarded_file_leaves_nothing(queue: Queue, client: Client) -> None:
    job = imported(queue, client)
    post(client, "import_discard", job.pk)
    assert not QueueImport.objects.exists()
    assert not Item.objects.exists()


def test_a_stranger_finds_no_queue_and_a_reader_changes_none(
    queue: Queue, client: Client, stranger: User, reader: User
) -> None:
    client.force_login(stranger)
    assert client.get(reverse("queues:page", args=[queue.pk])).status_code == 404
    client.force_login(reader)
    assert "Import a file" not in page(client, "page", queue.pk)
    assert client.post(reverse("queues:steer", args=[queue.pk]), {"do": "pause"}).status_code == 403
