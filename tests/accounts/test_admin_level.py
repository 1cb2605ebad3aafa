"""The admin does what the pages do: tags are merged and imports confirmed there, too."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import Import, Recipient, Tag, User
from tests.factories import ImportFactory, RecipientFactory, ReminderFactory, TagFactory

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis")]


@pytest.fixture(autouse=True)
def _logged_in(client: Client, staff: User) -> None:
    client.force_login(staff)


def act(client: Client, model: str, action: str, *rows: Any, **more: object) -> str:
    data = {"action": action, "_selected_action": [row.pk for row in rows], "index": 0, **more}
    answer = client.post(reverse(f"admin:accounts_{model}_changelist"), data, follow=True)
    return answer.content.decode()


def test_tags_are_merged_into_the_one_that_is_chosen(client: Client, owner: User) -> None:
    parents, school = (
        TagFactory.create(owner=owner, name="Parents"),
        TagFactory.create(owner=owner, name="School"),
    )
    ada = RecipientFactory.create(owner=owner, tags=[school])
    reminder = ReminderFactory.create(owner=owner, tags=[school])
    assert "Merge these tags?" in act(client, "tag", "merge_tags", parents, school)
    assert Tag.objects.count() == 2
    page = act(client, "tag", "merge_tags", parents, school, confirmed="1", into=parents.pk)
    assert "Merged into “Parents”: 1." in page
    assert list(ada.tags.all()) == list(reminder.tags.all()) == [parents]
    assert not Tag.objects.filter(pk=school.pk).exists()


def test_tags_of_two_owners_are_not_merged(client: Client, owner: User, stranger: User) -> None:
    mine, theirs = TagFactory.create(owner=owner), TagFactory.create(owner=stranger)
    page = act(client, "tag", "merge_tags", mine, theirs, confirmed="1", into=mine.pk)
    assert "Choose a different tag of the same owner." in page
    assert Tag.objects.count() == 2


def test_an_import_is_confirmed_after_its_numbers_are_shown(client: Client, owner: User) -> None:
    job = ImportFactory.create(
        owner=owner, status="checked", counts={"rows": 2, "new": 0, "known": 0, "bad": 2}
    )
    assert "2 with a problem" in act(client, "import", "confirm_imports", job)
    page = act(client, "import", "confirm_imports", job, confirmed="1")
    assert "No row of the file can be saved." in page
    assert Import.objects.get().status == "checked"
    assert not Recipient.objects.exists()


def test_an_import_is_discarded(client: Client, owner: User) -> None:
    job = ImportFactory.create(owner=owner, status="checked", counts={"rows": 2, "new": 2})
    assert "2 new" in act(client, "import", "discard_imports", job)
    act(client, "import", "discard_imports", job, confirmed="1")
    assert not Import.objects.exists()
