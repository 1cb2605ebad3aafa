"""Conversations through the real sandbox: answers go ahead of the work in hand, silence is followed up."""

from datetime import timedelta

import pytest
from django.utils import timezone

from delivery.engine import pump
from delivery.models import Run
from reminders.follow_ups.tick import tick
from reminders.models import FollowUp, Part
from tests.delivery.stage import Stage, serve
from tests.factories import FollowUpStepFactory, PartFactory
from tests.reminders.conversations.conversation import reply

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_second_message_overtakes_a_long_run_and_is_delivered_once(stage: Stage) -> None:
    account = stage.account()
    first = stage.fire(account, to=1)
    PartFactory.create(reminder=first.reminder, role=Part.Role.SECOND, text="Here is more, {{ name }}")
    serve(first, account)
    crowd = stage.fire(account, to=30, priority=100)
    answered = first.targets.get()
    reply(answered, "Tell me more", event="told-twice")
    reply(answered, "Tell me more", event="told-twice")
    pump.pump(account.pk)
    serve(crowd, account)
    texts = [line["text"] for line in stage.delivered(account)]
    assert texts.index(f"Here is more, {answered.recipient.name}") < 10
    assert sum(text.startswith("Here is more") for text in texts) == 1
    assert Run.objects.get(kind=Run.Kind.SECOND).status == "success"


def test_who_does_not_reply_is_followed_up_and_the_attempt_is_counted(stage: Stage) -> None:
    account = stage.account()
    first = stage.fire(account, to=2)
    FollowUpStepFactory.create(reminder=first.reminder, after_hours=24, text="Still there, {{ name }}?")
    serve(first, account)
    answers, silent = first.targets.order_by("pk")
    first.targets.update(settled_at=timezone.now() - timedelta(hours=25))
    reply(answers, "Here I am")
    tick()
    serve(Run.objects.get(kind=Run.Kind.FOLLOW_UP), account)
    tick()
    texts = [line["text"] for line in stage.delivered(account)]
    assert texts.count(f"Still there, {silent.recipient.name}?") == 1
    assert f"Still there, {answers.recipient.name}?" not in texts
    silent.recipient.refresh_from_db()
    assert silent.recipient.attempts == 1
    assert dict(FollowUp.objects.values_list("recipient_id", "status")) == {
        answers.recipient_id: "removed",
        silent.recipient_id: "sent",
    }
