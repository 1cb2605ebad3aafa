"""A reminder's frozen copy."""

import pytest
from django.core.exceptions import PermissionDenied

from accounts.models import User
from delivery import lifecycle
from delivery.lifecycle import WrongStateError
from reminders.fire import fire, freeze
from reminders.models import Reminder
from tests.factories import AccountFactory, MediaFactory, PartFactory, ReminderFactory

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis")]


def test_a_run_carries_a_copy_of_all_that_is_sent(owner: User) -> None:
    media = MediaFactory.create(owner=owner, filename="fair.png")
    reminder = ReminderFactory.create(
        owner=owner,
        name="Fair",
        subject="Hi",
        zone="Asia/Kuala_Lumpur",
        window_start_hour=0,
        window_end_hour=24,
        priority=3,
        on_close=Reminder.OnClose.RESUME,
        recipients=1,
    )
    PartFactory.create(reminder=reminder, position=1, kind="media", text="Look", media=media)
    PartFactory.create(reminder=reminder, position=0, second=True, text="Only after a reply")
    run = fire(reminder)
    assert run.parts == [
        {"kind": "text", "text": "Hello {{ name }}"},
        {
            "kind": "media",
            "text": "Look",
            "sha256": media.sha256,
            "file": media.file.name,
            "filename": "fair.png",
            "content_type": "image/png",
        },
    ]
    copied = (
        "name",
        "subject",
        "zone",
        "window_start_hour",
        "window_end_hour",
        "send_days",
        "priority",
        "action",
    )
    assert [getattr(run, name) for name in copied] == [getattr(reminder, name) for name in copied]
    assert run.resumes_by_itself
    assert run.owner == owner


def test_an_edit_afterwards_changes_nothing_of_the_run(owner: User) -> None:
    reminder = ReminderFactory.create(owner=owner, around_the_clock=True, recipients=2)
    run = fire(reminder)
    before = {field.name: getattr(run, field.attname) for field in run._meta.fields}
    reminder.parts.update(text="Changed")
    reminder.recipients.clear()
    reminder.window_end_hour, reminder.priority, reminder.name = 7, 9, "Changed"
    reminder.save()
    run.refresh_from_db()
    assert {field.name: getattr(run, field.attname) for field in run._meta.fields} == before
    assert run.targets.count() == 2


def test_accounts_keep_the_order_that_the_operator_gave_them(owner: User) -> None:
    first, second = AccountFactory.create_batch(2, owner=owner)
    reminder = ReminderFactory.create(owner=owner, accounts=[second, first])
    assert freeze(reminder).account_ids == [second.pk, first.pk]


def test_a_second_click_does_not_send_it_all_again(owner: User) -> None:
    reminder = ReminderFactory.create(owner=owner, around_the_clock=True, recipients=2)
    run = fire(reminder)
    with pytest.raises(WrongStateError, match=f"Run {run.pk} of this reminder is still running"):
        fire(reminder)
    lifecycle.cancel(run)
    assert fire(reminder).status == "running"


@pytest.mark.parametrize("who", ["owner", "mate", "staff"])
def test_those_who_may_touch_a_reminder_may_fire_it(who: str, request: pytest.FixtureRequest) -> None:
    owner: User = request.getfixturevalue("owner")
    reminder = ReminderFactory.create(owner=owner, around_the_clock=True, recipients=1)
    assert fire(reminder, by=request.getfixturevalue(who)).total == 1


@pytest.mark.parametrize("who", ["stranger", "reader"])
def test_others_may_not(who: str, request: pytest.FixtureRequest) -> None:
    owner: User = request.getfixturevalue("owner")
    reminder = ReminderFactory.create(owner=owner, around_the_clock=True, recipients=1)
    with pytest.raises(PermissionDenied, match="You may not change"):
        fire(reminder, by=request.getfixturevalue(who))
    assert not reminder.runs.exists()
