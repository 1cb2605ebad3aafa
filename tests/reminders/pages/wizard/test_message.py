"""The first step: parts in order, files, variables, and nothing that is typed gets lost."""

import io

import pytest
from django.core.files.storage import default_storage
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse
from PIL import Image
from pytest_django import DjangoAssertNumQueries, Settings

from accounts.models import User
from accounts.models.account import Channel
from reminders.fire import frozen
from reminders.models import Media, Part, Reminder
from reminders.readiness import problems
from reminders.uploads import store
from tests.factories import AccountFactory, PartFactory, RecipientFactory, ReminderFactory, TagFactory


@pytest.fixture
def draft(owner: User) -> Reminder:
    return ReminderFactory.create(owner=owner, parts=0, name="")


@pytest.fixture
def logged_in(client: Client, owner: User) -> Client:
    client.force_login(owner)
    return client


def url(reminder: Reminder, name: str = "message") -> str:
    return reverse(f"reminders:{name}", args=[reminder.pk])


def texts(reminder: Reminder, role: str = "first") -> list[str]:
    return list(reminder.parts.filter(role=role).order_by("position").values_list("text", flat=True))


def picture(name: str = "fair.png", colour: str = "red") -> SimpleUploadedFile:
    file = io.BytesIO()
    Image.new("RGB", (8, 8), colour).save(file, "PNG")
    return SimpleUploadedFile(name, file.getvalue())


def test_a_new_reminder_is_a_draft_with_an_address(logged_in: Client, owner: User) -> None:
    account = AccountFactory.create(owner=owner, by_email=True)
    response = logged_in.get(reverse("reminders:new"))
    draft = Reminder.objects.get()
    assert response["Location"] == url(draft)
    assert (draft.owner, draft.status, draft.channel, draft.action) == (owner, "draft", "email", "email")
    assert list(draft.accounts.all()) == [account]


def test_asking_twice_for_a_new_reminder_makes_one_draft(logged_in: Client, owner: User) -> None:
    for _ in range(2):
        logged_in.get(reverse("reminders:new"))
    first = Reminder.objects.get()
    PartFactory.create(reminder=first)
    logged_in.get(reverse("reminders:new"))
    assert Reminder.objects.count() == 2


def test_continue_saves_and_goes_to_the_recipients(logged_in: Client, draft: Reminder) -> None:
    data = {"name": "Rent", "first-0-text": "Hello\r\n{{ name }}", "first-1-text": " ", "do": "continue"}
    response = logged_in.post(url(draft), data)
    assert response["Location"] == url(draft, "recipients")
    draft.refresh_from_db()
    assert draft.name == "Rent"
    assert texts(draft) == ["Hello\n{{ name }}"]


def test_a_reminder_without_a_name_takes_its_first_words(logged_in: Client, draft: Reminder) -> None:
    long = "\nDear neighbours, the water is turned off on Friday from nine to eleven."
    logged_in.post(url(draft), {"name": "", "first-0-text": long, "do": "continue"})
    draft.refresh_from_db()
    assert draft.name == "Dear neighbours, the water is turned\N{HORIZONTAL ELLIPSIS}"


def test_without_a_message_it_does_not_go_on_and_keeps_the_name(logged_in: Client, draft: Reminder) -> None:
    response = logged_in.post(url(draft), {"name": "Rent", "first-0-text": "", "do": "continue"})
    assert "Write a message first" in response.content.decode()
    draft.refresh_from_db()
    assert draft.name == "Rent"


@pytest.mark.parametrize(
    ("do", "left"),
    [
        ("up-first-2", ["a", "c", "b"]),
        ("down-first-0", ["b", "a", "c"]),
        ("up-first-0", ["a", "b", "c"]),
        ("down-first-2", ["a", "b", "c"]),
        ("down-first-99", ["a", "b", "c"]),
        ("remove-first-1", ["a", "c"]),
        ("remove-first-77", ["a", "b", "c"]),
        ("no-such-thing", ["a", "b", "c"]),
    ],
)
def test_a_button_moves_or_removes_a_part_and_saves_all_that_is_typed(
    logged_in: Client, draft: Reminder, do: str, left: list[str]
) -> None:
    data = {"name": "Typed", "first-0-text": "a", "first-1-text": "b", "first-2-text": "c", "do": do}
    assert logged_in.post(url(draft), data).status_code == 302
    assert texts(draft) == left
    draft.refresh_from_db()
    assert draft.name == "Typed"


def test_adding_a_text_shows_an_empty_one_after_what_is_saved(logged_in: Client, draft: Reminder) -> None:
    response = logged_in.post(url(draft), {"name": "", "first-0-text": "a", "do": "add-first"}, follow=True)
    assert response.context["form"].parts["first"][1].typed.text == ""
    assert 'name="first-1-text"' in response.content.decode()
    assert texts(draft) == ["a"]


def test_saving_twice_is_saving_once(logged_in: Client, draft: Reminder) -> None:
    data = {"name": "x", "first-0-text": "a", "first-1-text": "b", "do": "continue"}
    logged_in.post(url(draft), data)
    kept = list(draft.parts.values_list("pk", flat=True))
    logged_in.post(url(draft), data)
    assert list(draft.parts.values_list("pk", flat=True)) == kept


def test_a_second_message_is_kept_apart(logged_in: Client, draft: Reminder) -> None:
    logged_in.post(url(draft), {"name": "", "first-0-text": "a", "second-0-text": "b", "do": "continue"})
    assert (texts(draft), texts(draft, "second")) == (["a"], ["b"])


def test_a_picture_becomes_a_part_with_what_else_is_typed(logged_in: Client, draft: Reminder) -> None:
    data = {"name": "", "first-0-text": "a", "first-file": picture("c:\\fair.png"), "do": "upload-first"}
    page = logged_in.post(url(draft), data, follow=True).content.decode()
    media = Media.objects.get()
    assert (media.content_type, media.filename) == ("image/png", "fair.png")
    assert [part.media for part in draft.parts.order_by("position")] == [None, media]
    assert reverse("reminders:media", args=[media.pk]) in page
    assert default_storage.size(media.file.name or "") == media.size


def test_the_same_file_is_kept_once_whatever_it_is_called(logged_in: Client, draft: Reminder) -> None:
    for name in ("one.png", "two.png"):
        logged_in.post(url(draft), {"name": "", "first-file": picture(name), "do": "upload-first"})
    assert Media.objects.count() == 1


def test_two_owners_of_the_same_file_share_its_place_on_the_disk(owner: User, stranger: User) -> None:
    mine, theirs = (store(picture(colour="teal"), owner=person) for person in (owner, stranger))
    assert mine.pk != theirs.pk
    assert mine.file.name == theirs.file.name


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"#!/bin/sh\necho hello\n", "is of a kind that cannot be sent"),
        (b"<html><script>alert(1)</script></html>", "is of a kind that cannot be sent"),
        (b"MZ" + b"\0" * 300, "is of a kind that cannot be sent"),
        (b"\x89PNG\r\n\x1a\n" + b"\0" * 64, "is not a picture that can be opened"),
        (b"", "is empty"),
    ],
)
def test_a_file_that_cannot_be_sent_is_told_beside_its_field_and_the_text_stays(
    logged_in: Client, draft: Reminder, content: bytes, why: str
) -> None:
    file = SimpleUploadedFile("photo.png", content, content_type="image/png")
    data = {"name": "", "first-0-text": "typed", "first-file": file, "do": "upload-first"}
    page = logged_in.post(url(draft), data).content.decode()
    assert why in page
    assert 'id="first-file-error"' in page
    assert texts(draft) == ["typed"]
    assert not Media.objects.exists()


def test_a_file_above_the_limit_is_413_beside_its_field(
    logged_in: Client, draft: Reminder, settings: Settings
) -> None:
    settings.MEDIA_MAX_MB = 1
    large = SimpleUploadedFile("film.mp4", b"\0\0\0\x18ftypmp42" + b"\0" * 1_200_000)
    data = {"name": "", "first-0-text": "typed", "first-file": large, "do": "upload-first"}
    response = logged_in.post(url(draft), data)
    assert response.status_code == 413
    assert "at most 1.0" in response.content.decode()
    assert texts(draft) == ["typed"]


def test_a_request_beyond_all_limits_is_refused_before_it_is_read(
    logged_in: Client, draft: Reminder, settings: Settings
) -> None:
    settings.MEDIA_MAX_MB = 1
    huge = SimpleUploadedFile("film.mp4", b"\0" * 4_000_000)
    response = logged_in.post(url(draft), {"first-0-text": "x", "first-file": huge})
    assert response.status_code == 413
    assert "The upload is too large" in response.content.decode()


def test_somebody_elses_file_cannot_be_named(logged_in: Client, draft: Reminder) -> None:
    theirs = PartFactory.create(with_media=True).media
    assert theirs is not None
    data = {"name": "", "first-0-text": "", "first-0-media_id": str(theirs.pk), "do": "check"}
    logged_in.post(url(draft), data)
    assert not draft.parts.exists()


def test_what_is_too_long_is_told_beside_its_field_and_nothing_is_lost(
    logged_in: Client, draft: Reminder
) -> None:
    data = {"name": "n" * 130, "first-0-text": "still here", "first-1-text": "x" * 20_001, "do": "continue"}
    page = logged_in.post(url(draft), data).content.decode()
    assert page.count('class="error"') == 2
    assert "still here" in page
    assert "n" * 130 in page


def test_typing_saves_a_draft_and_shows_it_as_a_recipient_reads_it(
    logged_in: Client, draft: Reminder, owner: User
) -> None:
    anna = RecipientFactory.create(owner=owner, name="Anna <b>", fields={"city": "Ipoh"})
    data = {"name": "", "first-0-text": "Hi {{ name }} of {{ city }}, {{ age }}", "as": str(anna.pk)}
    page = logged_in.post(url(draft, "message_preview"), data).content.decode()
    assert "Hi <b>Anna &lt;b&gt;</b> of <b>Ipoh</b>" in page
    assert "<mark" in page
    assert "has no value for" in page
    assert texts(draft) == [data["first-0-text"]]
    draft.refresh_from_db()
    assert draft.name == ""


def test_typing_changes_nothing_of_a_scheduled_reminder(logged_in: Client, owner: User) -> None:
    reminder = ReminderFactory.create(owner=owner, scheduled=True)
    page = logged_in.post(url(reminder, "message_preview"), {"name": "x", "first-0-text": "new"})
    assert "new" in page.content.decode()
    assert texts(reminder) == ["Hello {{ name }}"]


def test_the_preview_never_shows_somebody_elses_recipient(logged_in: Client, draft: Reminder) -> None:
    secret = RecipientFactory.create(name="Secret person")
    page = logged_in.get(url(draft), {"as": str(secret.pk)}).content.decode()
    assert "Secret person" not in page


def test_a_missing_variable_is_named_with_how_many_lack_it(logged_in: Client, owner: User) -> None:
    tag = TagFactory.create(owner=owner)
    RecipientFactory.create(owner=owner, tags=[tag], fields={"city": "Ipoh"})
    RecipientFactory.create_batch(3, owner=owner, tags=[tag])
    reminder = ReminderFactory.create(owner=owner, tags=[tag], parts=0)
    PartFactory.create(reminder=reminder, text="{{ city }}")
    page = logged_in.get(url(reminder)).content.decode()
    assert "is missing for 3 people" in page


def test_a_scheduled_reminder_keeps_a_message(logged_in: Client, owner: User) -> None:
    reminder = ReminderFactory.create(owner=owner, scheduled=True)
    page = logged_in.post(url(reminder), {"name": "x", "first-0-text": "", "do": "save"}).content.decode()
    assert "needs a message" in page
    assert texts(reminder) == ["Hello {{ name }}"]


def test_saving_a_scheduled_reminder_leads_back_to_its_page(logged_in: Client, owner: User) -> None:
    reminder = ReminderFactory.create(owner=owner, scheduled=True)
    page = logged_in.get(url(reminder)).content.decode()
    assert "Fits in window" in page or "Likely to pause" in page
    response = logged_in.post(url(reminder), {"name": "x", "first-0-text": "new", "do": "save"})
    assert response["Location"] == reverse("reminders:page", args=[reminder.pk])
    assert texts(reminder) == ["new"]


def test_an_e_mail_has_a_subject(logged_in: Client, owner: User) -> None:
    reminder = ReminderFactory.create(owner=owner, channel=Channel.EMAIL, action="email", parts=0)
    assert 'name="subject"' in logged_in.get(url(reminder)).content.decode()
    logged_in.post(url(reminder), {"name": "", "subject": "Hello", "first-0-text": "a", "do": "check"})
    reminder.refresh_from_db()
    assert reminder.subject == "Hello"
    assert 'name="subject"' not in logged_in.get(url(ReminderFactory.create(owner=owner))).content.decode()


def test_more_parts_than_a_message_can_have_are_refused(logged_in: Client, draft: Reminder) -> None:
    data = {f"first-{index}-text": str(index) for index in range(11)} | {"name": "", "do": "check"}
    assert "at most 10 parts" in logged_in.post(url(draft), data).content.decode()
    assert not draft.parts.exists()


def test_the_page_takes_as_many_queries_for_many_parts(
    logged_in: Client, owner: User, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    reminder = ReminderFactory.create(owner=owner, parts=8, recipients=30)
    with django_assert_max_num_queries(28):
        logged_in.get(url(reminder))
    Part.objects.filter(reminder=reminder).update(text="{{ city }}")
    with django_assert_max_num_queries(28):
        logged_in.get(url(reminder))


def test_a_text_gets_other_wordings_and_each_is_previewed(logged_in: Client, draft: Reminder) -> None:
    RecipientFactory.create(owner=draft.owner, name="Ada")
    data = {"name": "", "first-0-text": "Hi {{ name }}"}
    response = logged_in.post(url(draft), data | {"do": "wording-first-0"})
    page = logged_in.get(response["Location"].partition("#")[0]).content.decode()
    assert 'name="first-0-other0"' in page
    more = {"first-0-other0": "{Hello|Good morning} {{ name }}", "first-0-other1": " "}
    page = logged_in.post(url(draft), data | more | {"do": "check"}, follow=True).content.decode()
    part = draft.parts.get()
    assert (part.text, part.other_wordings) == ("Hi {{ name }}", ["{Hello|Good morning} {{ name }}"])
    assert "Wording A" in page
    assert "Wording B" in page
    assert "Hello / Good morning" in page


@pytest.mark.parametrize("place", ["first-0", "second-0"])
def test_a_text_that_is_still_empty_gets_another_wording(
    logged_in: Client, draft: Reminder, place: str
) -> None:
    data = {"name": "", f"{place}-text": "", "do": f"wording-{place}"}
    page = logged_in.post(url(draft), data, follow=True).content.decode()
    assert f'name="{place}-other0"' in page


def test_a_first_wording_that_is_emptied_is_replaced_by_the_next(logged_in: Client, draft: Reminder) -> None:
    data = {"name": "", "first-0-text": "", "first-0-other0": "B", "do": "check"}
    logged_in.post(url(draft), data)
    part = draft.parts.get()
    assert (part.text, part.other_wordings) == ("B", [])


def test_a_choice_inside_a_choice_is_kept_in_a_draft_but_not_continued_with(
    logged_in: Client, draft: Reminder
) -> None:
    data = {"name": "", "first-0-text": "{a|{b|c}}"}
    logged_in.post(url(draft, "message_preview"), data)
    assert texts(draft) == ["{a|{b|c}}"]
    page = logged_in.post(url(draft), data | {"do": "continue"}).content.decode()
    assert "inside another choice is not possible" in page
    assert any("inside another choice" in str(problem) for problem in problems(draft))


def test_a_variable_that_only_another_wording_has_is_counted_as_missing(
    logged_in: Client, owner: User
) -> None:
    tag = TagFactory.create(owner=owner)
    RecipientFactory.create_batch(3, owner=owner, tags=[tag])
    reminder = ReminderFactory.create(owner=owner, tags=[tag], parts=0)
    PartFactory.create(reminder=reminder, text="Hi", other_wordings=["Hi {from {{ city }}|you}"])
    assert "is missing for 3 people" in logged_in.get(url(reminder)).content.decode()


def test_braces_from_before_there_were_choices_stay_braces_when_they_are_edited(
    logged_in: Client, draft: Reminder
) -> None:
    PartFactory.create(reminder=draft, text="{a|b}", other_wordings=None)
    page = logged_in.get(url(draft)).content.decode()
    assert "\\{a|b}</textarea>" in page
    logged_in.post(url(draft), {"name": "", "first-0-text": "\\{a|b}", "do": "check"})
    assert [frozen(part).drawn(key="k", part=0) for part in draft.parts.all()] == ["{a|b}"]


def test_a_text_that_may_be_too_long_for_the_service_is_named(logged_in: Client, draft: Reminder) -> None:
    data = {"name": "", "first-0-text": "Hi", "first-0-other0": "x{|" + "y" * 5000 + "}"}
    page = logged_in.post(url(draft, "message_preview"), data).content.decode()
    assert "The longest wording has 5,001 characters" in page
