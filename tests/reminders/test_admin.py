"""The admin pages of reminders: the window's rules, the days, the schedule, and rows inside a page."""

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from accounts.models import User
from reminders.models import Reminder
from reminders.send_days import SendDaysField
from tests.factories import (
    FollowUpStepFactory,
    MediaFactory,
    PartFactory,
    RecipientFactory,
    ReminderAccountFactory,
    ReminderFactory,
)

INLINES = ("parts", "reminder_accounts", "follow_up_steps")
TYPED = (
    "name",
    "action",
    "schedule",
    "zone",
    "on_overlap",
    "window_start_hour",
    "window_end_hour",
    "on_close",
    "priority",
    "drip_gap_min",
    "drip_gap_max",
)


@pytest.fixture
def staff_client(client: Client, staff: User) -> Client:
    client.force_login(staff)
    return client


def change_url(reminder: Reminder) -> str:
    return reverse("admin:reminders_reminder_change", args=[reminder.pk])


def form(reminder: Reminder, **changed: Any) -> dict[str, Any]:
    """What a browser sends for a reminder's page when nothing inside it is touched."""
    empty = {f"{name}-{count}_FORMS": 0 for name in INLINES for count in ("TOTAL", "INITIAL")}
    typed = {name: getattr(reminder, name) for name in TYPED}
    return typed | {"send_days": [1, 2]} | empty | changed


@pytest.mark.django_db
@pytest.mark.parametrize(("start", "end"), [(18, 6), (9, 9), (6, 25), (24, 24), (-1, 5)])
def test_a_window_that_is_none_is_refused_with_a_sentence(
    staff_client: Client, owner: User, start: int, end: int
) -> None:
    reminder = ReminderFactory.create(owner=owner)
    answer = staff_client.post(
        change_url(reminder), form(reminder, window_start_hour=start, window_end_hour=end)
    )
    assert answer.status_code == 200
    assert answer.context["errors"]
    reminder.refresh_from_db()
    assert (reminder.window_start_hour, reminder.window_end_hour) == (6, 18)


@pytest.mark.django_db
def test_days_are_chosen_by_boxes(staff_client: Client, owner: User) -> None:
    reminder = ReminderFactory.create(owner=owner, business_hours=True)
    page = staff_client.get(change_url(reminder)).content.decode()
    assert page.count('name="send_days"') == 7
    assert page.count("checked") == 5
    assert staff_client.post(change_url(reminder), form(reminder, send_days=[1, 64])).status_code == 302
    reminder.refresh_from_db()
    assert reminder.send_days == 0b1000001
    answer = staff_client.post(change_url(reminder), form(reminder, send_days=[]))
    assert "Choose at least one day." in answer.content.decode()


@pytest.mark.django_db
def test_status_and_next_firing_are_not_typed(staff_client: Client, owner: User) -> None:
    reminder = ReminderFactory.create(owner=owner)
    typed = {"status": "scheduled", "next_fire_at_0": "2030-01-01", "next_fire_at_1": "00:00", "owner": 1}
    assert staff_client.post(change_url(reminder), form(reminder, **typed)).status_code == 302
    before, reminder = reminder, Reminder.objects.get(pk=reminder.pk)
    assert (reminder.status, reminder.next_fire_at, reminder.owner) == ("draft", None, before.owner)


@pytest.mark.django_db
def test_the_times_of_a_scheduled_reminder_stand_until_it_is_switched_off(
    staff_client: Client, owner: User
) -> None:
    typed = {"schedule": "cron", "cron": "0 9 * * *", "zone": "Asia/Kuala_Lumpur"}
    scheduled = ReminderFactory.create(owner=owner, scheduled=True)
    off = ReminderFactory.create(owner=owner, off=True)
    for reminder, cron in ((scheduled, ""), (off, "0 9 * * *")):
        assert staff_client.post(change_url(reminder), form(reminder, **typed)).status_code == 302
        assert Reminder.objects.get(pk=reminder.pk).cron == cron


@pytest.mark.django_db
def test_a_reminder_is_archived_once_it_is_not_scheduled_and_never_deleted(
    staff_client: Client, owner: User
) -> None:
    scheduled, done = (
        ReminderFactory.create(owner=owner, **{state: True}) for state in ("scheduled", "done")
    )
    chosen = {"action": "archive", "_selected_action": [scheduled.pk, done.pk]}
    staff_client.post(reverse("admin:reminders_reminder_changelist"), chosen)
    assert list(Reminder.objects.filter(archived_at=None)) == [scheduled]
    assert staff_client.post(reverse("admin:reminders_reminder_delete", args=[done.pk])).status_code == 403


@pytest.mark.django_db
def test_a_thousand_recipients_are_a_number_and_a_link(staff_client: Client, owner: User) -> None:
    reminder = ReminderFactory.create(owner=owner, recipients=2)
    RecipientFactory.create(owner=owner)
    page = staff_client.get(change_url(reminder)).content.decode()
    link = f"{reverse('admin:accounts_recipient_changelist')}?reminders__id__exact={reminder.pk}"
    assert link in page
    assert str(reminder.recipients.all()[0]) not in page
    assert set(staff_client.get(link).context["cl"].queryset) == set(reminder.recipients.all())


@pytest.mark.django_db
def test_rows_inside_a_reminder_cost_no_query_each(staff_client: Client, owner: User) -> None:
    def queries(rows: int) -> int:
        reminder = ReminderFactory.create(owner=owner, parts=0, accounts=rows)
        for position in range(rows):
            PartFactory.create(reminder=reminder, position=position, with_media=True)
            FollowUpStepFactory.create(reminder=reminder, position=position)
        staff_client.get(change_url(reminder))
        with CaptureQueriesContext(connection) as captured:
            page = staff_client.get(change_url(reminder)).content.decode()
        assert all(str(account) in page for account in reminder.accounts.all())
        assert all(str(part.media) in page for part in reminder.parts.all())
        return len(captured)

    assert queries(2) == queries(12) <= 25


@pytest.mark.django_db
def test_parts_and_accounts_are_changed_inside_their_reminder(staff_client: Client, owner: User) -> None:
    reminder = ReminderFactory.create(owner=owner, parts=0, accounts=0)
    media = MediaFactory.create(owner=owner)
    other = ReminderAccountFactory.create(reminder__owner=owner).account
    rows = {
        "parts-TOTAL_FORMS": 2,
        "parts-0-role": "first",
        "parts-0-position": 0,
        "parts-0-kind": "text",
        "parts-0-text": "Hello",
        "parts-1-role": "first",
        "parts-1-position": 1,
        "parts-1-kind": "media",
        "parts-1-media": media.pk,
        "reminder_accounts-TOTAL_FORMS": 1,
        "reminder_accounts-0-account": other.pk,
        "reminder_accounts-0-position": 0,
    }
    assert staff_client.post(change_url(reminder), form(reminder, **rows)).status_code == 302
    assert [(part.text, part.media) for part in reminder.parts.all()] == [("Hello", None), ("", media)]
    assert reminder.accounts.get() == other


def test_the_same_days_are_no_change() -> None:
    field = SendDaysField()
    assert not field.has_changed(0b11, ["1", "2"])
    assert field.has_changed(0b11, ["1"])
    assert field.clean(["1", "1", "4"]) == 0b101
