"""`send_notices` does once, in its own process, what workers do."""

import json
from io import StringIO

import pytest
from django.core.management import call_command
from django_celery_beat.models import PeriodicTask

from accounts.models import User
from activity.models import Notification
from activity.notify import tell
from config.celery import app
from notices import tasks
from notices.models import NoticeAddress
from tests.notices.services import Services

pytestmark = pytest.mark.django_db


def said(*arguments: str) -> str:
    out = StringIO()
    call_command("send_notices", *arguments, stdout=out)
    return out.getvalue()


def test_it_passes_on_and_sends_what_is_due(channel: NoticeAddress, chat: Services, owner: User) -> None:
    tell(owner.pk, Notification.Kind.FAILED, key="run:1:failed", title="Reminder not delivered")
    assert json.loads(said("--json")) == {"told_again": 0, "passed_on": 1, "sent": 1, "failed": 0}
    assert [body["title"] for body in chat.messages()] == ["Reminder not delivered"]
    assert said() == "0 told again, 0 notifications passed on, 0 messages sent, 0 not sent.\n"


def test_it_counts_what_was_not_sent(channel: NoticeAddress, chat: Services, owner: User) -> None:
    chat.status = 500
    tell(owner.pk, Notification.Kind.FAILED, key="run:1:failed", title="Reminder not delivered")
    assert json.loads(said("--json"))["failed"] == 1


@pytest.mark.usefixtures("redis")
def test_the_tasks_of_the_workers_do_the_same(channel: NoticeAddress, chat: Services, owner: User) -> None:
    tell(owner.pk, Notification.Kind.FAILED, key="run:1:failed", title="Reminder not delivered")
    tasks.go_on()
    tasks.deliver(channel.pk)
    tasks.forget()
    assert [body["title"] for body in chat.messages()] == ["Reminder not delivered"]


def test_beat_starts_the_tasks_by_itself() -> None:
    planned = PeriodicTask.objects.filter(task__startswith="notices.").values_list("task", "interval__every")
    assert sorted(planned) == [("notices.forget", 600), ("notices.go_on", 5)]
    assert {task for task, _ in planned} <= set(app.tasks)
