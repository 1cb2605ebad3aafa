"""The third step: times as people say them, hours, days, and what happens at the close."""

from datetime import UTC, datetime, time
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import time_machine
from django.test import Client
from django.urls import reverse
from hypothesis import given
from hypothesis import strategies as st

from accounts.models import User
from reminders.models import Reminder
from reminders.moments import check_cron
from reminders.pages.wizard.when_form import cron_of, repeat_of
from reminders.schedule_words import timing_of
from tests.factories import RecipientFactory, ReminderFactory

NOON = datetime(2026, 3, 11, 12, tzinfo=UTC)
VALID: dict[str, Any] = {
    "schedule": "once",
    "at": "2026-03-12T09:00",
    "repeat": "daily",
    "repeat_at": "09:00",
    "cron": "",
    "zone": "Asia/Kuala_Lumpur",
    "window_start_hour": "6",
    "window_end_hour": "18",
    "send_days": ["1", "2", "4"],
    "on_close": "resume",
    "on_overlap": "queue",
    "on_paused": "skip",
    "priority": "2",
    "gap_min": "5",
    "gap_max": "20",
}


@pytest.fixture(autouse=True)
def at_noon() -> Any:
    with time_machine.travel(NOON, tick=False):
        yield


@pytest.fixture
def logged_in(client: Client, owner: User) -> Client:
    client.force_login(owner)
    return client


@pytest.fixture
def draft(owner: User) -> Reminder:
    return ReminderFactory.create(owner=owner, zone="Asia/Kuala_Lumpur")


def url(reminder: Reminder, name: str = "when") -> str:
    return reverse(f"reminders:{name}", args=[reminder.pk])


def test_a_time_is_meant_in_the_reminders_zone_whatever_the_readers_is(
    logged_in: Client, draft: Reminder, owner: User
) -> None:
    owner.zone = "America/New_York"
    owner.save()
    response = logged_in.post(url(draft), VALID | {"do": "continue"})
    assert response["Location"] == url(draft, "review")
    draft.refresh_from_db()
    assert draft.fire_at == datetime(2026, 3, 12, 1, tzinfo=UTC)
    assert (draft.send_days, draft.on_close, draft.on_overlap, draft.priority) == (7, "resume", "queue", 2)
    assert draft.on_paused == "skip"
    assert 'value="2026-03-12T09:00"' in logged_in.get(url(draft)).content.decode()


@pytest.mark.parametrize(
    ("change", "cron"),
    [
        ({"repeat": "daily"}, "0 9 * * *"),
        ({"repeat": "weekdays", "repeat_at": "07:30"}, "30 7 * * 1-5"),
        ({"repeat": "weekly", "weekday": "7"}, "0 9 * * 7"),
        ({"repeat": "monthly", "month_day": "15"}, "0 9 15 * *"),
        ({"repeat": "custom", "cron": "*/20 8-10 * * 1"}, "*/20 8-10 * * 1"),
    ],
)
def test_what_repeats_is_chosen_in_words_and_kept_as_cron(
    logged_in: Client, draft: Reminder, change: dict[str, str], cron: str
) -> None:
    logged_in.post(url(draft), VALID | {"schedule": "cron", "do": "check"} | change)
    draft.refresh_from_db()
    assert draft.cron == cron
    shown = logged_in.get(url(draft)).context["form"].initial
    assert shown["repeat"] == change["repeat"]


@given(
    repeat=st.sampled_from(["daily", "weekdays", "weekly", "monthly"]),
    at=st.times().map(lambda at: time(at.hour, at.minute)),
    weekday=st.integers(1, 7),
    day=st.integers(1, 31),
)
def test_what_was_chosen_comes_back_as_it_was(repeat: str, at: time, weekday: int, day: int) -> None:
    cron = cron_of(repeat, at, weekday=weekday, month_day=day)
    check_cron(cron)
    again = repeat_of(cron)
    assert (again["repeat"], again["repeat_at"]) == (repeat, at)
    if repeat == "weekly":
        assert again["weekday"] == weekday
    if repeat == "monthly":
        assert again["month_day"] == day


@pytest.mark.parametrize(
    "cron", ["99 9 * * *", "0 25 * * *", "0 9 1 * 1", "0 9 * 1 *", "nonsense", "*/5 * * * *"]
)
def test_what_is_not_simple_stays_an_expression(cron: str) -> None:
    assert repeat_of(cron)["repeat"] == "custom"


@pytest.mark.parametrize(
    ("change", "field", "why"),
    [
        ({"at": ""}, "at", "Choose when it is sent"),
        ({"at": "2026-03-11T19:00"}, "at", "This time is in the past (Asia/Kuala_Lumpur)"),
        ({"at": "0001-01-01T00:00"}, "at", "This time is in the past (Asia/Kuala_Lumpur)"),
        ({"at": "9999-12-31T23:59"}, "at", "This time is in the year 9999. Choose one within 5 years."),
        ({"at": "yesterday"}, "at", "Write a date"),
        ({"zone": "Mars/Olympus"}, "zone", "is not a time zone"),
        ({"window_start_hour": "18", "window_end_hour": "6"}, "window_end_hour", "make two reminders"),
        ({"window_start_hour": "9", "window_end_hour": "9"}, "window_end_hour", "end after they start"),
        ({"window_end_hour": "25"}, "window_end_hour", "not on the list"),
        ({"send_days": []}, "send_days", "Choose at least one day"),
        ({"schedule": "cron", "repeat": "custom", "cron": "0 9 * *"}, "cron", "has 4 of the five fields"),
        ({"schedule": "cron", "repeat": "custom", "cron": "0 9 30 2 *"}, "cron", "so it never fires"),
        ({"schedule": "cron", "repeat_at": ""}, "repeat_at", "Choose a time of the day"),
        ({"schedule": "cron", "repeat": "monthly"}, "month_day", "Choose a day of the month"),
        ({"gap_min": "30"}, "gap_max", "must not be shorter"),
    ],
)
def test_what_is_wrong_is_told_beside_its_field_and_nothing_is_lost(
    logged_in: Client, draft: Reminder, change: dict[str, Any], field: str, why: str
) -> None:
    response = logged_in.post(url(draft), VALID | {"do": "continue"} | change)
    assert response.status_code == 200
    assert why in " ".join(response.context["form"].errors[field])
    assert why in response.content.decode()
    draft.refresh_from_db()
    assert draft.fire_at is None
    assert 'value="2"' in response.content.decode()


def test_a_draft_with_a_mistyped_year_can_be_opened(logged_in: Client, draft: Reminder) -> None:
    far = datetime(9999, 12, 31, 12, tzinfo=UTC)
    Reminder.objects.filter(pk=draft.pk).update(schedule="once", fire_at=far)
    assert logged_in.get(url(draft)).status_code == 200
    assert logged_in.get(url(draft, "review")).status_code == 200


def test_back_from_a_half_filled_form_keeps_the_rest(logged_in: Client, draft: Reminder) -> None:
    data = VALID | {"at": "", "window_start_hour": "18", "window_end_hour": "6", "do": "back"}
    assert logged_in.post(url(draft), data)["Location"] == url(draft, "recipients")
    draft.refresh_from_db()
    assert (draft.on_close, draft.priority) == ("resume", 2)
    assert (draft.window_start_hour, draft.window_end_hour) == (6, 18)


def test_a_preview_says_it_in_words_with_the_next_five_firings_and_saves_nothing(
    logged_in: Client, draft: Reminder
) -> None:
    data = VALID | {"schedule": "cron", "repeat": "weekdays"}
    page = logged_in.post(url(draft, "when_preview"), data).content.decode()
    assert "At 09:00 on Monday through Friday" in page
    assert page.count("<time") == 5
    draft.refresh_from_db()
    assert (draft.schedule, draft.cron) == ("cron", "0 9 * * 1-5")
    assert "Saved." in page


def test_what_is_valid_of_a_draft_is_saved_while_choosing(logged_in: Client, draft: Reminder) -> None:
    data = VALID | {"schedule": "cron", "repeat": "custom", "cron": "every day", "zone": "Asia/Kuala_Lumpur"}
    page = logged_in.post(url(draft, "when_preview"), data).content.decode()
    draft.refresh_from_db()
    assert (draft.zone, draft.schedule, draft.cron) == ("Asia/Kuala_Lumpur", "cron", "")
    assert "Everything else is saved." in page


def test_a_scheduled_reminder_changes_only_when_it_is_saved(logged_in: Client, owner: User) -> None:
    reminder = ReminderFactory.create(owner=owner, scheduled=True, recipients=1)
    data = VALID | {"schedule": "cron", "repeat": "weekdays", "repeat_at": "09:00"}
    assert "Saved." not in logged_in.post(url(reminder, "when_preview"), data).content.decode()
    reminder.refresh_from_db()
    assert reminder.schedule == "once"


def test_a_preview_of_nonsense_says_what_to_write(logged_in: Client, draft: Reminder) -> None:
    data = VALID | {"schedule": "cron", "repeat": "custom", "cron": "every day"}
    assert "of the five fields" in logged_in.post(url(draft, "when_preview"), data).content.decode()


def test_a_clock_change_ahead_is_noted(owner: User) -> None:
    reminder = ReminderFactory.build(
        owner=owner, schedule="cron", cron="0 9 * * 1", zone="Europe/Berlin", send_days=127
    )
    timing = timing_of(reminder, now=NOON)
    assert [moment.astimezone(ZoneInfo("Europe/Berlin")).hour for moment in timing.firings] == [9] * 5
    (note,) = timing.notes
    assert note.startswith("The clocks in Europe/Berlin change before 30 March, from CET to CEST")


@pytest.mark.parametrize(
    ("cron", "note"),
    [
        ("0 3 * * *", "It then waits for the delivery hours, until Thursday 06:00."),
        ("0 20 * * *", "This time is after the delivery hours, which end at 18:00. Nothing would be sent."),
    ],
)
def test_a_firing_outside_the_delivery_hours_is_noted(owner: User, cron: str, note: str) -> None:
    reminder = ReminderFactory.build(owner=owner, schedule="cron", cron=cron, zone="UTC", send_days=127)
    assert timing_of(reminder, now=NOON).notes == [note]


def test_a_scheduled_reminder_follows_its_new_time(logged_in: Client, owner: User) -> None:
    reminder = ReminderFactory.create(
        owner=owner, scheduled=True, recipients=[RecipientFactory.create(owner=owner)]
    )
    response = logged_in.post(url(reminder), VALID | {"send_days": list("1234567"), "do": "save"})
    assert response.status_code == 200  # 3, 5 and the like are no days
    days = [str(1 << day) for day in range(7)]
    response = logged_in.post(url(reminder), VALID | {"send_days": days, "do": "save"})
    assert response["Location"] == url(reminder, "page")
    reminder.refresh_from_db()
    assert reminder.next_fire_at == reminder.fire_at == datetime(2026, 3, 12, 1, tzinfo=UTC)


def test_a_scheduled_reminder_that_could_not_be_sent_any_more_is_not_saved(
    logged_in: Client, owner: User
) -> None:
    reminder = ReminderFactory.create(
        owner=owner, scheduled=True, recipients=[RecipientFactory.create(owner=owner)]
    )
    before = reminder.fire_at
    days = [str(1 << day) for day in range(7)]
    data = VALID | {"at": "2026-03-12T20:00", "send_days": days, "do": "save"}
    page = logged_in.post(url(reminder), data).content.decode()
    assert "after the delivery hours" in page
    reminder.refresh_from_db()
    assert reminder.fire_at == before
