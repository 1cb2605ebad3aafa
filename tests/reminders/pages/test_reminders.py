"""The list of reminders, the page of one, and what can be done there."""

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries
from redis import Redis

from accounts.models import User
from delivery.models import Run
from reminders.models import FollowUpStep, Reminder
from tests.factories import (
    FollowUpStepFactory,
    PartFactory,
    RecipientFactory,
    ReminderFactory,
    RunAccountFactory,
    RunFactory,
    TagFactory,
)


@pytest.fixture
def logged_in(client: Client, owner: User) -> Client:
    client.force_login(owner)
    return client


def url(reminder: Reminder, name: str = "page") -> str:
    return reverse(f"reminders:{name}", args=[reminder.pk])


def test_the_page_says_what_to_whom_and_when(logged_in: Client, owner: User) -> None:
    tag = TagFactory.create(owner=owner, name="Neighbours")
    RecipientFactory.create_batch(2, owner=owner, tags=[tag], group=True)
    reminder = ReminderFactory.create(owner=owner, scheduled=True, repeating=True, tags=[tag])
    page = logged_in.get(url(reminder)).content.decode()
    for text in ("Hello", "2 groups", "Neighbours", "At 09:00 on Monday through Friday", "Next times"):
        assert text in page


def test_a_paused_run_is_on_top_with_its_two_ways_out(logged_in: Client, owner: User) -> None:
    reminder = ReminderFactory.create(owner=owner, scheduled=True)
    run = RunFactory.create(reminder=reminder, paused=True, sent=3, pending=7, summary="It closed at 18:00.")
    page = logged_in.get(url(reminder)).content.decode()
    assert "Paused: the delivery window closed" in page
    assert "It closed at 18:00." in page
    assert f'action="{reverse("runs:resume", args=[run.pk])}"' in page
    assert f'href="{reverse("runs:cancel", args=[run.pk])}"' in page


def test_a_run_under_way_shows_its_numbers_and_asks_for_them_again(logged_in: Client, owner: User) -> None:
    reminder = ReminderFactory.create(owner=owner, scheduled=True)
    run = RunFactory.create(reminder=reminder, sent=3, failed=1, sending=1, pending=5)
    sender = RunAccountFactory.create(run=run).account
    page = " ".join(logged_in.get(url(reminder)).content.decode().split())
    told = f'data-run="{run.pk}" data-accounts="{sender.pk} " data-status="running"'
    assert f'{told} data-sent="3" data-failed="1" data-pending="6"' in page
    assert f'hx-get="{reverse("runs:progress", args=[run.pk])}"' in page


def test_the_page_takes_as_many_queries_for_many_runs(
    logged_in: Client, owner: User, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    reminder = ReminderFactory.create(
        owner=owner,
        scheduled=True,
        parts=3,
        accounts=3,
        recipients=30,
        tags=TagFactory.create_batch(3, owner=owner),
    )
    RunFactory.create_batch(25, reminder=reminder, success=True)
    RunFactory.create_batch(2, reminder=reminder, paused=True, pending=1)
    for run in RunFactory.create_batch(3, reminder=reminder, pending=1):
        RunAccountFactory.create(run=run)
    with django_assert_max_num_queries(28):
        page = logged_in.get(url(reminder)).content.decode()
    assert 'rel="next"' in page


def test_firing_by_hand_asks_first_with_the_number(logged_in: Client, owner: User, redis: Redis) -> None:
    people = RecipientFactory.create_batch(2, owner=owner, group=True)
    reminder = ReminderFactory.create(owner=owner, scheduled=True, around_the_clock=True, recipients=people)
    page = logged_in.get(url(reminder, "fire"))
    assert "Send to 2 groups" in page.content.decode()
    data = {"key": str(page.context["key"])}
    for _ in range(2):
        response = logged_in.post(url(reminder, "fire"), data)
    assert response["Location"] == reverse("runs:page", args=[Run.objects.get().pk])


@pytest.mark.parametrize("trait", ["archived", "draft"])
def test_a_draft_or_an_archived_one_is_not_fired(logged_in: Client, owner: User, trait: str) -> None:
    people = RecipientFactory.create_batch(2, owner=owner)
    values = {"recipients": people, "archived": trait == "archived", "around_the_clock": True}
    reminder = ReminderFactory.create(owner=owner, **values)
    response = logged_in.post(url(reminder, "fire"), {"key": "no key"}, follow=True)
    assert "Schedule it first" in response.content.decode()
    assert not Run.objects.exists()


def test_switching_off_and_back_on(logged_in: Client, owner: User) -> None:
    people = RecipientFactory.create_batch(2, owner=owner)
    reminder = ReminderFactory.create(owner=owner, scheduled=True, around_the_clock=True, recipients=people)
    logged_in.post(url(reminder, "off"))
    reminder.refresh_from_db()
    assert (reminder.status, reminder.next_fire_at) == ("off", None)
    assert url(reminder, "review") in logged_in.get(url(reminder)).content.decode()
    logged_in.post(url(reminder, "review"), {"do": "schedule"})
    reminder.refresh_from_db()
    assert reminder.status == "scheduled"


def test_a_copy_has_everything_but_a_time(logged_in: Client, owner: User) -> None:
    tag = TagFactory.create(owner=owner)
    reminder = ReminderFactory.create(
        owner=owner,
        scheduled=True,
        parts=2,
        accounts=2,
        recipients=3,
        tags=[tag],
        name="Rent",
        second_message_hours=2,
        follow_up_max_attempts=1,
        follow_up_cooldown_hours=5,
    )
    PartFactory.create(reminder=reminder, second=True, other_wordings=["Thanks {{ name }}"])
    PartFactory.create(reminder=reminder, with_media=True, position=2)
    FollowUpStepFactory.create(reminder=reminder)
    response = logged_in.post(url(reminder, "duplicate"))
    copy = Reminder.objects.get(name="Copy of Rent")
    assert response["Location"] == url(copy, "message")
    assert (copy.status, copy.fire_at, copy.next_fire_at) == ("draft", None, None)
    assert (copy.second_message_hours, copy.follow_up_max_attempts, copy.follow_up_cooldown_hours) == (
        2,
        1,
        5,
    )
    assert copy.parts.count() == 4
    assert [part.other_wordings for part in copy.parts.filter(role="second")] == [["Thanks {{ name }}"]]
    assert set(copy.accounts.all()) == set(reminder.accounts.all())
    assert set(copy.recipients.all()) == set(reminder.recipients.all())
    assert list(copy.tags.all()) == [tag]
    assert FollowUpStep.objects.filter(reminder=copy).count() == 1


def test_archiving_and_bringing_back(logged_in: Client, owner: User) -> None:
    reminder = ReminderFactory.create(owner=owner, off=True, name="Old one")
    logged_in.post(url(reminder, "archive"))
    assert "Old one" not in logged_in.get(reverse("reminders:list")).content.decode().partition("<table")[2]
    assert "Old one" in logged_in.get(reverse("reminders:list"), {"status": "archived"}).content.decode()
    logged_in.post(url(reminder, "unarchive"))
    assert "Old one" in logged_in.get(reverse("reminders:list")).content.decode()


@pytest.mark.parametrize(
    ("values", "run", "why"),
    [
        ({"scheduled": True}, None, "Switch it off first"),
        ({"off": True}, {"pending": 1}, "has a run under way"),
    ],
)
def test_what_is_at_work_is_not_archived(
    logged_in: Client, owner: User, values: dict[str, bool], run: dict[str, int] | None, why: str
) -> None:
    reminder = ReminderFactory.create(owner=owner, **values)
    if run:
        RunFactory.create(reminder=reminder, **run)
    page = logged_in.post(url(reminder, "archive"), follow=True).content.decode()
    assert why in page
    reminder.refresh_from_db()
    assert reminder.archived_at is None


def test_a_draft_is_discarded_after_asking(logged_in: Client, owner: User) -> None:
    draft = ReminderFactory.create(owner=owner, recipients=2)
    assert "is deleted" in logged_in.get(url(draft, "discard")).content.decode()
    logged_in.post(url(draft, "discard"))
    assert not Reminder.objects.exists()


def test_what_has_run_is_not_discarded(logged_in: Client, owner: User) -> None:
    run = RunFactory.create(reminder__owner=owner, success=True)
    page = logged_in.post(url(run.reminder, "discard"), follow=True).content.decode()
    assert "Archive it instead" in page
    assert Reminder.objects.exists()


def test_the_list_is_filtered_by_what_the_address_says(logged_in: Client, owner: User) -> None:
    ReminderFactory.create(owner=owner, name="Still a draft")
    ReminderFactory.create(owner=owner, name="On its way", scheduled=True)
    ReminderFactory.create(owner=owner, name="Resting", off=True)
    listing = reverse("reminders:list")
    for status, name in (("draft", "Still a draft"), ("scheduled", "On its way"), ("off", "Resting")):
        page = logged_in.get(listing, {"status": status}).content.decode()
        assert page.count('<th scope="row">') == 1
        assert name in page
    assert logged_in.get(listing, {"status": "nonsense"}).content.decode().count('<th scope="row">') == 3
    assert "No reminder found" in logged_in.get(listing, {"status": "done"}).content.decode()
    assert "On its way" in logged_in.get(listing, {"q": "its"}).content.decode()


def test_a_draft_in_the_list_leads_to_where_it_is_written(logged_in: Client, owner: User) -> None:
    draft = ReminderFactory.create(owner=owner, name="")
    page = logged_in.get(reverse("reminders:list")).content.decode()
    assert f'href="{url(draft, "message")}">Unnamed draft' in page
