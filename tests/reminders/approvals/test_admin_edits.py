"""Edits in the administration ask again in the name of whoever made them."""

import pytest
from django.test import Client
from pytest_django import DjangoCaptureOnCommitCallbacks

from accounts.models import Approval, User
from reminders import scheduling
from reminders.drafts import locked_to_edit
from reminders.models import Reminder
from tests.factories import FollowUpStepFactory, PartFactory
from tests.reminders.test_admin import change_url, form

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis")]


@pytest.fixture
def staff_client(client: Client, staff: User) -> Client:
    client.force_login(staff)
    return client


def test_who_edited_the_page_of_a_reminder_asks(
    staff_client: Client,
    staff: User,
    reminder: Reminder,
    owner: User,
    sender: User,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    """Also after somebody else has looked: else the editor could approve the own edit then."""
    scheduling.schedule(reminder, by=owner)
    with django_capture_on_commit_callbacks(execute=True):
        staff_client.post(change_url(reminder), form(reminder, name="Other name"))
        locked_to_edit(reminder, by=sender)
    assert Approval.objects.waiting().get().asked_by == staff


def test_rows_that_are_deleted_from_the_list_ask_again(
    staff_client: Client,
    staff: User,
    reminder: Reminder,
    owner: User,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    parts = [PartFactory.create(reminder=reminder, position=place) for place in (1, 2)]
    scheduling.schedule(reminder, by=owner)
    chosen = {"action": "delete_selected", "_selected_action": [part.pk for part in parts], "post": "yes"}
    with django_capture_on_commit_callbacks(execute=True):
        staff_client.post("/admin/reminders/part/", chosen)
    assert reminder.parts.count() == 1
    assert Approval.objects.waiting().get().asked_by == staff


def test_a_step_that_is_changed_by_itself_asks_again(
    staff_client: Client,
    staff: User,
    reminder: Reminder,
    owner: User,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    step = FollowUpStepFactory.create(reminder=reminder)
    scheduling.schedule(reminder, by=owner)
    typed = {
        "reminder": reminder.pk,
        "position": 0,
        "after_hours": 24,
        "text": "Other words",
        "urgency": "low",
    }
    with django_capture_on_commit_callbacks(execute=True):
        staff_client.post(f"/admin/reminders/followupstep/{step.pk}/change/", typed)
    step.refresh_from_db()
    assert step.text == "Other words"
    assert Approval.objects.waiting().get().asked_by == staff
