"""A queue that a second person has to approve as a whole."""

from datetime import timedelta
from io import BytesIO

import pytest
from django.core.files.base import File
from django.test import Client
from django.utils import timezone

from accounts.imports.stages import WrongStageError
from accounts.models import Account, Approval, User
from queues import steering
from queues.actions import withdraw
from queues.imports import stages
from queues.imports.columns import guess
from queues.models import Item, Queue, QueueImport
from reminders.approvals.deciding import approve
from reminders.drafts import NotPossibleError
from tests.factories import ApprovalNumberFactory, QueueFactory
from tests.queues.test_actions import entry, take

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis")]


@pytest.fixture
def queue(owner: User, sender: User) -> Queue:
    ApprovalNumberFactory.create(owner=owner, above=3)
    return QueueFactory.create(owner=owner)


def test_more_new_items_within_a_day_than_the_number_are_refused(queue: Queue) -> None:
    take(queue, *(entry(n) for n in range(3)))
    take(queue, *(entry(n) for n in range(3)))  # known, and equal
    with pytest.raises(NotPossibleError, match="More than 3 new items within a day need approval"):
        take(queue, entry(9))
    assert Item.objects.count() == 3
    Item.objects.update(added_at=timezone.now() - timedelta(days=1, minutes=1))
    take(queue, entry(9))


def test_items_that_come_back_count_as_new_ones(queue: Queue) -> None:
    """Taken in small portions, withdrawn by their source, and given again all at once, or a few at a time."""
    for some in (range(3), range(3, 6)):
        take(queue, *(entry(n) for n in some))
        withdraw(queue, by=None, source="file", own_ids=[f"row-{n}" for n in some], by_source=True)
        Item.objects.update(added_at=timezone.now() - timedelta(days=2))
    with pytest.raises(NotPossibleError, match="More than 3 new items within a day need approval"):
        take(queue, *(entry(n, text="Other words") for n in range(6)))
    take(queue, *(entry(n) for n in range(3)))
    with pytest.raises(NotPossibleError, match="More than 3 new items within a day need approval"):
        take(queue, entry(5))
    assert Item.objects.filter(withdrawn_at=None).count() == 3


def test_one_call_with_more_than_the_number_is_refused_as_a_whole(queue: Queue) -> None:
    with pytest.raises(NotPossibleError, match="nothing of this was taken"):
        take(queue, *(entry(n) for n in range(4)))
    assert not Item.objects.exists()


def test_an_approved_queue_takes_everything_until_it_is_changed(
    queue: Queue, owner: User, sender: User
) -> None:
    waits = steering.ask_approval(queue, by=owner)
    approve(waits, content=waits.content, by=sender)
    take(queue, *(entry(n) for n in range(8)))
    Queue.objects.filter(pk=queue.pk).update(text="Other words")
    with pytest.raises(NotPossibleError, match="need approval"):
        take(queue, entry(9))


def test_an_edit_between_looking_and_approving_does_not_open_it(
    queue: Queue, owner: User, sender: User
) -> None:
    waits = steering.ask_approval(queue, by=owner)
    Queue.objects.filter(pk=queue.pk).update(text="Other words")
    approve(waits, content=waits.content, by=sender)
    with pytest.raises(NotPossibleError, match="need approval"):
        take(queue, *(entry(n) for n in range(8)))


def test_nothing_is_taken_for_a_marked_account(owner: User, sender: User) -> None:
    queue = QueueFactory.create(owner=owner)
    take(queue, entry(1))
    Account.objects.update(needs_approval=True)
    with pytest.raises(NotPossibleError, match="needs approval"):
        take(queue, entry(1, text="Other words"))


def test_what_needs_no_approval_is_not_asked_about(owner: User) -> None:
    with pytest.raises(NotPossibleError, match="needs no approval"):
        steering.ask_approval(QueueFactory.create(owner=owner), by=owner)


def test_the_page_asks_for_approval(queue: Queue, owner: User, client: Client) -> None:
    client.force_login(owner)
    assert "Ask for approval" in client.get(f"/queues/{queue.pk}/").content.decode()
    answer = client.post(f"/queues/{queue.pk}/steer/", {"do": "ask-approval"})
    asked = Approval.objects.get()
    assert answer["Location"] == f"/approvals/{asked.pk}/"
    assert "Waits for approval" in client.get(f"/queues/{queue.pk}/").content.decode()


def _file(queue: Queue, rows: int) -> QueueImport:
    lines = ["id,to,text", *(f"n{n},+60127000{n:03},Hello {n}" for n in range(rows))]
    job = stages.upload(queue, File(BytesIO("\n".join(lines).encode())), filename="a.csv", by=queue.owner)
    QueueImport.objects.filter(pk=job.pk).update(columns=guess(["id", "to", "text"]))
    job.refresh_from_db()
    stages.start_check(job)
    job.refresh_from_db()
    assert job.counts["good"] == rows
    return job


def test_an_import_above_the_number_says_so_and_takes_nothing(queue: Queue) -> None:
    job = _file(queue, 4)
    with pytest.raises(WrongStageError, match="More than 3 new items within a day need approval"):
        stages.confirm(job, by=queue.owner)
    job.refresh_from_db()
    assert job.status == QueueImport.Status.CHECKED
    assert not Item.objects.exists()
    stages.confirm(_file(queue, 3), by=queue.owner)
    assert Item.objects.count() == 3


def test_an_import_that_the_queue_refuses_while_it_is_saved_says_why(queue: Queue) -> None:
    """The queue was edited, or took others, since the import was confirmed."""
    job = _file(queue, 2)
    take(queue, *(entry(n) for n in range(3)))
    QueueImport.objects.filter(pk=job.pk).update(status=QueueImport.Status.SAVING)
    stages.work(job.pk)
    job.refresh_from_db()
    assert job.status == QueueImport.Status.FAILED
    assert "More than 3 new items within a day need approval" in job.problem
