"""The admin pages of reminders: the window's rules, the days, the schedule, and rows inside a page."""

from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from accounts.models import User
from delivery.pages.days_field import SendDaysField
from reminders.models import Reminder
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
    "on_paused",
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
    """Return the form that a browser sends for a reminder's page when nothing is changed."""
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


# Schedule, Switch off, Send now.


@pytest.fixture
def ready(owner: User) -> Reminder:
    cron = {"schedule": "cron", "cron": "0 9 * * 1-5", "zone": "Europe/Berlin"}
    return ReminderFactory.create(owner=owner, name="Fair", recipients=2, around_the_clock=True, **cron)


def act(client: Client, action: str, *chosen: Reminder, **more: Any) -> list[str]:
    """Do an action of the list, and return what staff are told."""
    sent = {"action": action, "_selected_action": [reminder.pk for reminder in chosen]} | more
    answer = client.post(reverse("admin:reminders_reminder_changelist"), sent, follow=True)
    return [str(message) for message in answer.context["messages"]]


@pytest.mark.django_db
def test_staff_schedule_and_switch_off_from_the_list(staff_client: Client, ready: Reminder) -> None:
    assert act(staff_client, "schedule", ready) == ["Scheduled: 1."]
    ready.refresh_from_db()
    assert (ready.status, ready.next_fire_at is None) == ("scheduled", False)
    assert act(staff_client, "switch_off", ready) == ["Switched off: 1."]
    ready.refresh_from_db()
    assert (ready.status, ready.next_fire_at) == ("off", None)


@pytest.mark.django_db
def test_what_cannot_be_scheduled_says_why_and_the_others_are(
    staff_client: Client, ready: Reminder, owner: User
) -> None:
    empty = ReminderFactory.create(owner=owner, name="Empty", by_hand=True, parts=0)
    told = act(staff_client, "schedule", ready, empty)
    assert told[0] == "Scheduled: 1."
    assert told[1].startswith("Empty: Message: There is no message yet. Write one. Recipients: There are no")


@pytest.mark.django_db
@pytest.mark.usefixtures("redis")
def test_firing_asks_first_and_says_how_many_it_reaches(staff_client: Client, ready: Reminder) -> None:
    act(staff_client, "schedule", ready)
    sent = {"action": "fire_now", "_selected_action": [ready.pk]}
    page = staff_client.post(reverse("admin:reminders_reminder_changelist"), sent).content.decode()
    assert "2 people" in page
    assert not ready.runs.exists()
    assert act(staff_client, "fire_now", ready, confirmed="yes") == ["Started: 1."]
    assert ready.runs.get().total == 2
    (told,) = act(staff_client, "fire_now", ready, confirmed="yes")
    assert "is still running. Wait for its end" in told
    assert ready.runs.count() == 1


@pytest.mark.django_db
def test_a_draft_is_not_fired(staff_client: Client, ready: Reminder) -> None:
    (told,) = act(staff_client, "fire_now", ready, confirmed="yes")
    assert told == "Fair is a draft or archived. Schedule it first, then send it."
    assert not ready.runs.exists()


@pytest.mark.django_db
@pytest.mark.parametrize("status", ["draft", "scheduled", "off", "done"])
def test_the_page_has_the_buttons_that_its_state_allows(
    staff_client: Client, owner: User, status: str
) -> None:
    traits = {} if status == "draft" else {status: True}
    page = staff_client.get(change_url(ReminderFactory.create(owner=owner, **traits))).content.decode()
    shown = {name for name in ("schedule", "switch_off", "fire_now") if f'value="{name}"' in page}
    assert (
        shown
        == {
            "draft": {"schedule"},
            "scheduled": {"switch_off", "fire_now"},
            "off": {"schedule", "fire_now"},
            "done": {"schedule", "fire_now"},
        }[status]
    )


@pytest.mark.django_db
def test_a_button_of_the_page_comes_back_to_it(staff_client: Client, ready: Reminder) -> None:
    sent = {"action": "schedule", "_selected_action": [ready.pk], "back_to": ready.pk}
    answer = staff_client.post(reverse("admin:reminders_reminder_changelist"), sent)
    assert answer.headers["Location"] == change_url(ready)
    page = staff_client.get(change_url(ready)).content.decode()
    assert "At 09:00 on Monday through Friday:<br>" in page


@pytest.mark.django_db
def test_operators_do_not_get_there(client: Client, owner: User, ready: Reminder) -> None:
    client.force_login(owner)
    sent = {"action": "schedule", "_selected_action": [ready.pk]}
    assert client.post(reverse("admin:reminders_reminder_changelist"), sent).status_code == 302
    ready.refresh_from_db()
    assert ready.status == "draft"


@pytest.mark.django_db
def test_a_time_is_typed_on_the_clock_of_the_reminders_zone(staff_client: Client, owner: User) -> None:
    reminder = ReminderFactory.create(owner=owner, off=True)
    typed = {"schedule": "once", "zone": "Asia/Kuala_Lumpur", "fire_at_0": "2030-05-01", "fire_at_1": "09:00"}
    assert staff_client.post(change_url(reminder), form(reminder, **typed)).status_code == 302
    reminder.refresh_from_db()
    assert reminder.fire_at == datetime(2030, 5, 1, 1, tzinfo=UTC)
    page = staff_client.get(change_url(reminder)).content.decode()
    assert 'value="09:00:00"' in page
    half = form(reminder, schedule="once", fire_at_0="2030-05-01", fire_at_1="")
    assert "Give both a date and a time." in staff_client.post(change_url(reminder), half).content.decode()


@pytest.mark.django_db
def test_a_cron_that_means_nothing_is_refused_with_what_to_write(staff_client: Client, owner: User) -> None:
    reminder = ReminderFactory.create(owner=owner)
    page = staff_client.post(change_url(reminder), form(reminder, schedule="cron", cron="61 * * * *"))
    assert "“61” is not possible as the minute" in page.content.decode()


@pytest.mark.django_db
def test_an_edit_that_leaves_a_scheduled_one_unfit_is_saved_and_said(
    staff_client: Client, ready: Reminder
) -> None:
    act(staff_client, "schedule", ready)
    ready.recipients.clear()
    ready.refresh_from_db()
    answer = staff_client.post(change_url(ready), form(ready), follow=True)
    told = [str(message) for message in answer.context["messages"]]
    assert any(
        "it cannot be sent like this. Recipients: There are no recipients." in message for message in told
    )


def test_the_same_days_are_no_change() -> None:
    field = SendDaysField()
    assert not field.has_changed(0b11, ["1", "2"])
    assert field.has_changed(0b11, ["1"])
    assert field.clean(["1", "1", "4"]) == 0b101
