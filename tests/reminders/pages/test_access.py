"""Access to reminders and runs: every address, with every kind of person."""

import pytest
from django.test import Client
from django.urls import reverse
from redis import Redis

from accounts.models import User
from delivery.models import Run
from reminders.models import Reminder
from tests.factories import MediaFactory, RecipientFactory, ReminderFactory, RunFactory, RunTargetFactory

READ = ("reminders:page", "reminders:count", "runs:page", "runs:progress", "runs:results")
WRITE = (
    "reminders:message",
    "reminders:recipients",
    "reminders:when",
    "reminders:review",
    "reminders:discard",
    "reminders:fire",
    "runs:cancel",
)
POST_ONLY = (
    "reminders:message_preview",
    "reminders:when_preview",
    "reminders:duplicate",
    "reminders:archive",
    "reminders:unarchive",
    "reminders:off",
    "runs:pause",
    "runs:resume",
    "runs:retry",
    "runs:archive",
    "runs:unarchive",
    "runs:confirm",
    "runs:resend",
)


class Things:
    """One of everything of the owner."""

    def __init__(self, owner: User) -> None:
        recipients = RecipientFactory.create_batch(2, owner=owner)
        self.reminder = ReminderFactory.create(owner=owner, by_hand=True, recipients=recipients)
        self.run = RunFactory.create(reminder=self.reminder, pending=1)
        self.target = RunTargetFactory.create(run=self.run)

    def url(self, name: str) -> str:
        if name in ("runs:confirm", "runs:resend"):
            return reverse(name, args=[self.run.pk, self.target.pk])
        return reverse(name, args=[self.reminder.pk if name.startswith("reminders") else self.run.pk])


@pytest.fixture
def things(owner: User) -> Things:
    return Things(owner)


@pytest.mark.parametrize("name", READ)
def test_those_who_may_see_it_see_it(
    client: Client, things: Things, owner: User, mate: User, reader: User, staff: User, name: str
) -> None:
    for person in (owner, mate, reader, staff):
        client.force_login(person)
        assert client.get(things.url(name)).status_code == 200


@pytest.mark.parametrize("name", WRITE)
def test_those_who_may_touch_it_get_its_forms(
    client: Client, things: Things, owner: User, mate: User, staff: User, name: str
) -> None:
    for person in (owner, mate, staff):
        client.force_login(person)
        assert client.get(things.url(name)).status_code == 200


@pytest.mark.parametrize("name", [*WRITE, *POST_ONLY])
def test_a_reader_is_refused_with_a_sentence(client: Client, things: Things, reader: User, name: str) -> None:
    client.force_login(reader)
    response = client.post(things.url(name))
    assert response.status_code == 403
    assert Reminder.objects.get().status == Reminder.Status.DRAFT
    assert Run.objects.get().status == "running"


@pytest.mark.parametrize("name", [*READ, *WRITE, *POST_ONLY])
def test_a_stranger_finds_nothing_there(client: Client, things: Things, stranger: User, name: str) -> None:
    client.force_login(stranger)
    ask = client.get if name in READ else client.post
    assert ask(things.url(name)).status_code == 404


@pytest.mark.parametrize("name", [*READ, *WRITE, *POST_ONLY])
def test_a_visitor_is_asked_to_log_in(client: Client, things: Things, name: str) -> None:
    ask = client.get if name in READ else client.post
    assert ask(things.url(name))["Location"].startswith(reverse("login"))


@pytest.mark.parametrize("name", POST_ONLY)
def test_what_changes_something_is_a_post(client: Client, things: Things, owner: User, name: str) -> None:
    client.force_login(owner)
    assert client.get(things.url(name)).status_code == 405


def test_a_reader_sees_no_buttons(client: Client, owner: User, reader: User) -> None:
    reminder = ReminderFactory.create(owner=owner, scheduled=True)
    run = RunFactory.create(reminder=reminder, paused=True, sent=3, failed=1, pending=6)
    client.force_login(reader)
    for url in (reverse("reminders:page", args=[reminder.pk]), reverse("runs:page", args=[run.pk])):
        text = client.get(url).content.decode()
        assert "Paused: the delivery window closed" in text
        for action in ("resume", "cancel", "retry", "/off", "/fire", "/archive"):
            assert f'{action}"' not in text


def test_a_media_file_is_for_those_who_see_its_owners_things(
    client: Client, owner: User, reader: User, stranger: User
) -> None:
    media = MediaFactory.create(owner=owner, stored=True)
    url = reverse("reminders:media", args=[media.pk])
    for person, status in ((owner, 200), (reader, 200), (stranger, 404)):
        client.force_login(person)
        assert client.get(url).status_code == status


def test_a_file_that_is_gone_from_the_storage_is_not_found(client: Client, owner: User) -> None:
    client.force_login(owner)
    assert (
        client.get(reverse("reminders:media", args=[MediaFactory.create(owner=owner).pk])).status_code == 404
    )


def test_a_mate_resumes_the_owners_run(client: Client, owner: User, mate: User, redis: Redis) -> None:
    run = RunFactory.create(reminder__owner=owner, reminder__around_the_clock=True, paused=True, targets=2)
    client.force_login(mate)
    client.post(reverse("runs:resume", args=[run.pk]))
    run.refresh_from_db()
    assert (run.status, run.changed_by) == ("running", mate)
