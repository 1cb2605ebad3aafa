"""Reminders, parts, media and follow-ups that the database itself refuses."""

from typing import Any

import pytest
from django.db.models import Model

from tests.factories import (
    FollowUpFactory,
    FollowUpStepFactory,
    MediaFactory,
    PartFactory,
    ReminderAccountFactory,
    ReminderFactory,
)
from tests.refusals import (
    Refusal,
    as_parameters,
    changed,
    check_below_zero,
    declared,
    doubled,
    numbers_from_zero,
)

pytestmark = pytest.mark.django_db

BAD_WINDOWS = {
    "a window that ends when it starts": (9, 9),
    "a window that ends before it starts": (18, 6),
    "a window over midnight": (22, 6),
    "a window that starts at 24": (24, 24),
    "a window that ends after 24": (6, 25),
    "a window of more than a day": (0, 48),
}

REFUSALS = [
    *(
        changed(sentence, "reminder_window", ReminderFactory, window_start_hour=start, window_end_hour=end)
        for sentence, (start, end) in BAD_WINDOWS.items()
    ),
    doubled(
        "two carriers of single messages for one channel of an owner",
        "reminder_one_carrier",
        ReminderFactory,
        "owner",
        carries_messages=True,
    ),
    changed("a reminder without a send day", "reminder_send_days", ReminderFactory, send_days=0),
    changed("a reminder with an eighth day", "reminder_send_days", ReminderFactory, send_days=128),
    changed("a reminder with an unknown status", "reminder_status_known", ReminderFactory, status="maybe"),
    changed("an unknown kind of schedule", "reminder_schedule_known", ReminderFactory, schedule="hourly"),
    changed("an unknown choice on closing", "reminder_on_close_known", ReminderFactory, on_close="drop"),
    changed("an unknown choice on overlap", "reminder_on_overlap_known", ReminderFactory, on_overlap="both"),
    changed(
        "an unknown choice beside a pause", "reminder_on_paused_known", ReminderFactory, on_paused="both"
    ),
    changed(
        "a drip whose shortest gap is above the longest",
        "reminder_drip_gap",
        ReminderFactory,
        drip_gap_min=601,
        drip_gap_max=600,
    ),
    changed(
        "a reminder scheduled once, at no time",
        "reminder_scheduled_has_a_time",
        ReminderFactory,
        {"scheduled": True},
        fire_at=None,
    ),
    changed(
        "a reminder scheduled to repeat, without a cron line",
        "reminder_scheduled_has_a_time",
        ReminderFactory,
        {"scheduled": True, "repeating": True},
        cron="",
    ),
    doubled(
        "an account twice on one reminder",
        "reminder_account_once",
        ReminderAccountFactory,
        "reminder",
        "account",
    ),
    # Parts
    doubled(
        "two parts in one position", "part_once_per_position", PartFactory, "reminder", "role", "position"
    ),
    changed("a part in an unknown role", "part_role_known", PartFactory, role="third"),
    changed("a part of an unknown kind", "part_has_its_content", PartFactory, kind="dance"),
    changed("a text part without a text", "part_has_its_content", PartFactory, text=""),
    changed(
        "a media part without a file", "part_has_its_content", PartFactory, {"with_media": True}, media=None
    ),
    changed(
        "a text part with a file", "part_has_its_content", PartFactory, {"with_media": True}, kind="text"
    ),
    # Media
    doubled("one content twice for one owner", "media_once", MediaFactory, "owner", "sha256"),
    changed("media with a hash that is none", "media_hash_is_sha256", MediaFactory, sha256="x" * 64),
    changed("media with a short hash", "media_hash_is_sha256", MediaFactory, sha256="ab" * 16),
    # Follow-ups
    doubled(
        "two follow-up steps in one position",
        "follow_up_step_once",
        FollowUpStepFactory,
        "reminder",
        "position",
    ),
    changed("a follow-up after no time", "follow_up_step_later", FollowUpStepFactory, after_hours=0),
    changed("a reminder on an unknown channel", "reminder_channel_known", ReminderFactory, channel="pigeon"),
    changed("a reminder of an unknown action", "reminder_action_known", ReminderFactory, action="wave"),
    changed("a follow-up of an unknown urgency", "follow_up_urgency_known", FollowUpFactory, urgency="panic"),
    changed("a step of an unknown urgency", "follow_up_step_urgency", FollowUpStepFactory, urgency="panic"),
    doubled(
        "one follow-up step twice for one message",
        "follow_up_once_per_step",
        FollowUpFactory,
        "step",
        "target",
    ),
    doubled(
        "two follow-ups on their way to one recipient",
        "follow_up_one_on_its_way",
        FollowUpFactory,
        "recipient",
        on_its_way=True,
    ),
    doubled(
        "two follow-ups sent as one message",
        "reminders_followup_sent_as_id_key",
        FollowUpFactory,
        "sent_as",
        on_its_way=True,
    ),
    changed(
        "a follow-up on its way as nothing",
        "follow_up_on_its_way_as_a_target",
        FollowUpFactory,
        {"on_its_way": True},
        sent_as=None,
    ),
    changed("no time to reply", "reminder_second_message_hours", ReminderFactory, second_message_hours=0),
    changed(
        "a fourth follow-up", "reminder_follow_up_max_attempts", ReminderFactory, follow_up_max_attempts=4
    ),
    changed("no cooldown", "reminder_follow_up_cooldown_hours", ReminderFactory, follow_up_cooldown_hours=0),
    changed("a follow-up with an unknown status", "follow_up_status_known", FollowUpFactory, status="lost"),
    changed(
        "a follow-up removed for no reason",
        "follow_up_removed_for_a_reason",
        FollowUpFactory,
        {"removed": True},
        removed_reason="",
    ),
]


@pytest.mark.parametrize("refusal", as_parameters(REFUSALS))
def test_the_database_refuses(refusal: Refusal) -> None:
    refusal.check()


def test_every_constraint_is_tried() -> None:
    assert declared("reminders") - {refusal.constraint for refusal in REFUSALS} == set()


@pytest.mark.parametrize(("model", "column"), numbers_from_zero("reminders"))
def test_the_database_refuses_a_number_below_zero(model: type[Model], column: str) -> None:
    check_below_zero(model, column)


@pytest.mark.parametrize(
    "values",
    [
        pytest.param({"window_start_hour": 0, "window_end_hour": 24}, id="the whole day"),
        pytest.param({"window_start_hour": 23, "window_end_hour": 24}, id="the last hour"),
        pytest.param({"window_start_hour": 0, "window_end_hour": 1}, id="the first hour"),
        pytest.param({"send_days": 0b0000001}, id="Mondays"),
        pytest.param({"send_days": 0b1111111}, id="every day"),
        pytest.param({"drip_gap_min": 300, "drip_gap_max": 300}, id="a drip at an even pace"),
        pytest.param({"status": "draft", "schedule": "once", "fire_at": None}, id="a draft without a time"),
        pytest.param({"status": "scheduled", "schedule": "by_hand", "fire_at": None}, id="one fired by hand"),
    ],
)
def test_the_database_takes_what_is_just_allowed(values: dict[str, Any]) -> None:
    reminder = ReminderFactory.create(**values)
    reminder.refresh_from_db()
    assert {name: getattr(reminder, name) for name in values} == values


def test_two_parts_change_places_in_one_transaction() -> None:
    reminder = ReminderFactory.create(parts=2)
    first, second = reminder.parts.all()
    reminder.parts.filter(pk=first.pk).update(position=1)
    reminder.parts.filter(pk=second.pk).update(position=0)
    assert [part.pk for part in reminder.parts.all()] == [second.pk, first.pk]


def test_the_same_file_serves_two_owners() -> None:
    first = MediaFactory.create()
    assert MediaFactory.create(sha256=first.sha256).pk != first.pk
