"""Tags: made, renamed, merged, deleted, and tied to all that a filter finds."""

import pytest
from django.core.exceptions import PermissionDenied
from django.test import Client
from django.urls import reverse

from accounts.models import Recipient, Tag, User
from accounts.pages import tags as tag_pages
from accounts.recipients import tags
from tests.factories import RecipientFactory, ReminderFactory, TagFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def choir(owner: User) -> Tag:
    return TagFactory.create(owner=owner, name="Choir")


@pytest.fixture
def as_owner(client: Client, owner: User) -> Client:
    client.force_login(owner)
    return client


def url(name: str, *args: object) -> str:
    return reverse(f"recipients:{name}", args=args)


def test_a_tag_is_made_once(owner: User) -> None:
    assert tags.create(owner, "  Parents  2026 ").name == "Parents 2026"
    with pytest.raises(tags.TagError, match="already"):
        tags.create(owner, "Parents 2026")
    with pytest.raises(tags.TagError, match="cannot contain"):
        tags.create(owner, "Swimming, Tuesday")
    with pytest.raises(tags.TagError, match="1 to 60"):
        tags.create(owner, "  ")


def test_a_tag_is_renamed_unless_the_name_is_taken(choir: Tag, owner: User) -> None:
    tags.rename(choir, "Sing\0ers", by=owner)
    TagFactory.create(owner=owner, name="Band")
    with pytest.raises(tags.TagError, match="Merge the two"):
        tags.rename(choir, "Band", by=owner)
    choir.refresh_from_db()
    assert choir.name == "Singers"


def test_merging_moves_recipients_and_reminders(choir: Tag, owner: User) -> None:
    band = TagFactory.create(owner=owner, name="Band")
    both = RecipientFactory.create(owner=owner, tags=[choir, band])
    one = RecipientFactory.create(owner=owner, tags=[choir])
    reminder = ReminderFactory.create(owner=owner, tags=[choir])
    tags.merge(choir, into=band, by=owner)
    assert set(band.recipients.all()) == {both, one}
    assert list(band.reminders.all()) == [reminder]
    assert not Tag.objects.filter(name="Choir").exists()


def test_tags_of_two_people_are_not_merged(choir: Tag, owner: User, staff: User) -> None:
    with pytest.raises(tags.TagError, match="same owner"):
        tags.merge(choir, into=TagFactory.create(), by=staff)
    with pytest.raises(tags.TagError, match="same owner"):
        tags.merge(choir, into=choir, by=owner)


def test_a_tag_that_a_scheduled_reminder_needs_is_not_deleted(choir: Tag, owner: User) -> None:
    reminder = ReminderFactory.create(owner=owner, name="Rehearsal", scheduled=True, tags=[choir])
    with pytest.raises(tags.TagError, match="“Rehearsal”"):
        tags.delete(choir, by=owner)
    reminder.tags.clear()
    tags.delete(choir, by=owner)
    assert not Tag.objects.exists()


def test_a_tag_is_tied_to_and_taken_off_all_at_once(choir: Tag, owner: User, stranger: User) -> None:
    first, second = RecipientFactory.create_batch(2, owner=owner)
    foreign = RecipientFactory.create(owner=stranger)
    first.tags.add(choir)
    assert tags.tag_all(Recipient.objects.all(), choir, by=owner) == 1
    assert set(choir.recipients.all()) == {first, second}
    assert not foreign.tags.exists()
    assert tags.untag_all(Recipient.objects.filter(pk=first.pk), choir, by=owner) == 1
    assert list(choir.recipients.all()) == [second]


def test_a_reader_and_a_stranger_change_no_tag(choir: Tag, reader: User, stranger: User) -> None:
    for person in (reader, stranger):
        with pytest.raises(PermissionDenied):
            tags.rename(choir, "Mine", by=person)
        with pytest.raises(PermissionDenied):
            tags.delete(choir, by=person)
        with pytest.raises(PermissionDenied):
            tags.tag_all(Recipient.objects.all(), choir, by=person)


class TestPages:
    def test_the_list_counts_and_makes_tags(self, as_owner: Client, choir: Tag, owner: User) -> None:
        RecipientFactory.create_batch(2, owner=owner, tags=[choir])
        answer = as_owner.get(url("tags"))
        assert [(tag.name, tag.size) for tag in answer.context["page"].rows] == [("Choir", 2)]
        assert as_owner.post(url("tags"), {"name": "Band"}).status_code == 302
        assert "already" in as_owner.post(url("tags"), {"name": "Band"}).content.decode()

    def test_a_stranger_sees_no_tag_and_a_reader_changes_none(
        self, client: Client, choir: Tag, stranger: User, reader: User
    ) -> None:
        client.force_login(stranger)
        assert "Choir" not in client.get(url("tags")).content.decode()
        assert client.get(url("tag", choir.pk)).status_code == 404
        client.force_login(reader)
        assert "Delete the tag" not in client.get(url("tag", choir.pk)).content.decode()
        assert client.post(url("tag", choir.pk), {"do": "delete"}).status_code == 403

    def test_a_tag_is_renamed_merged_and_deleted_on_its_page(
        self, as_owner: Client, choir: Tag, owner: User
    ) -> None:
        band = TagFactory.create(owner=owner, name="Band")
        RecipientFactory.create(owner=owner, tags=[choir])
        assert "Merge 1 recipient<" in as_owner.get(url("tag", choir.pk)).content.decode()
        as_owner.post(url("tag", choir.pk), {"do": "rename", "name": "Singers"})
        assert (
            "Merge the two"
            in as_owner.post(url("tag", choir.pk), {"do": "rename", "name": "Band"}).content.decode()
        )
        assert as_owner.post(url("tag", choir.pk), {"do": "merge"}).status_code == 200
        answer = as_owner.post(url("tag", choir.pk), {"do": "merge", "into": band.pk}, follow=True)
        assert "Tag “Singers” was merged into “Band”." in answer.content.decode()
        as_owner.post(url("tag", band.pk), {"do": "delete"})
        assert not Tag.objects.exists()
        assert Recipient.objects.count() == 1

    def test_a_tag_of_many_is_deleted_by_its_typed_name_alone(
        self, as_owner: Client, choir: Tag, owner: User, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(tag_pages, "TYPED_ABOVE", 1)
        RecipientFactory.create_batch(2, owner=owner, tags=[choir])
        assert "Type the name" in as_owner.post(url("tag", choir.pk), {"do": "delete"}).content.decode()
        as_owner.post(url("tag", choir.pk), {"do": "delete", "typed": "Choir"})
        assert not Tag.objects.exists()

    def test_all_that_a_filter_finds_are_tagged_after_their_number_was_shown(
        self, as_owner: Client, owner: User
    ) -> None:
        RecipientFactory.create_batch(3, owner=owner, mailbox=True)
        RecipientFactory.create(owner=owner)
        address = url("tag_all") + "?channel=email"
        assert "Tag 3 recipients" in as_owner.get(address).content.decode()
        answer = as_owner.post(address, {"do": "add", "name": "Mail"})
        assert answer["Location"] == url("list") + "?channel=email"
        assert Tag.objects.get(name="Mail").recipients.count() == 3
        as_owner.post(address, {"do": "remove", "name": "Mail"})
        assert Tag.objects.get(name="Mail").recipients.count() == 0
        refused = as_owner.post(address, {"do": "remove", "name": "None such"})
        assert "There is no tag" in refused.content.decode()
