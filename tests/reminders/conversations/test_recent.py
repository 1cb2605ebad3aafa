"""The newest replies on the pages of runs and reminders."""

from datetime import UTC, datetime, timedelta

import pytest

from activity.models import Inbound
from delivery.models import Run
from reminders.conversations.recent import SHOWN, replies_to_reminder, replies_to_run
from tests.factories import InboundFactory, ReminderFactory, RunFactory

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 3, 11, 8, tzinfo=UTC)


def reply(run: Run, minute: int) -> Inbound:
    return InboundFactory.create(run=run, kind="message", at=NOW + timedelta(minutes=minute))


def test_the_newest_of_all_runs_come_first() -> None:
    reminder = ReminderFactory.create()
    first, second = RunFactory.create_batch(2, reminder=reminder)
    early, late, middle = reply(first, 1), reply(first, 9), reply(second, 5)
    InboundFactory.create(run=first, kind="receipt", at=NOW)
    reply(RunFactory.create(), 7)
    assert replies_to_reminder(reminder) == [late, middle, early]
    assert replies_to_run(second) == [middle]


def test_few_of_many_are_shown() -> None:
    run = RunFactory.create()
    many = [reply(run, minute) for minute in range(SHOWN + 3)]
    assert replies_to_reminder(run.reminder) == many[: -SHOWN - 1 : -1]


def test_a_reminder_that_was_never_sent_has_none() -> None:
    assert replies_to_reminder(ReminderFactory.create()) == []
