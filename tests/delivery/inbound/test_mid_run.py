"""Replies that come while a message is being sent, by the real engine to the real sandbox."""

import threading

import pytest
from django.utils import timezone
from pytest_django import Settings

from accounts.models import Account, Recipient
from delivery.engine import pump
from delivery.fanout import NothingToSendError
from delivery.inbound import store
from delivery.models import Run
from delivery.transports.base import Receipt, ReceiptState
from reminders.conversations import replies
from tests.delivery.stage import Stage, add_up, counted, serve
from tests.factories import PartFactory
from tests.reminders.conversations.conversation import hear


def say_after(stage: Stage, account: Account, who: Recipient, text: str, *, messages: int) -> None:
    """Write as the recipient after so many messages have arrived, while the pump still works."""
    thread = threading.Thread(target=pump.pump, args=(account.pk,))
    thread.start()
    while thread.is_alive() and len(stage.received(account)) < messages:
        thread.join(0.005)
    hear(account, text, chat=who.address)
    thread.join()


def test_stop_between_two_parts_keeps_the_rest_back(stage: Stage, quick: Settings) -> None:
    quick.PART_GAP_MIN_MS = quick.PART_GAP_MAX_MS = 600
    account = stage.account(group_concurrency=1)
    (who,) = stage.recipients(1)
    run = stage.fire(account, to=[who], parts=3)
    say_after(stage, account, who, "STOP", messages=1)
    serve(run, account)
    assert counted(run) == {"skipped": 1}
    assert run.targets.get().error == "opted out"
    assert len(stage.received(account)) == 1
    add_up(run)


def test_a_reply_between_two_parts_brings_the_second_message_after_the_last(
    stage: Stage, quick: Settings
) -> None:
    quick.PART_GAP_MIN_MS = quick.PART_GAP_MAX_MS = 600
    account = stage.account(group_concurrency=1)
    (who,) = stage.recipients(1)
    run = stage.fire(account, to=[who], parts=2)
    PartFactory.create(reminder=run.reminder, second=True, text="Second")
    say_after(stage, account, who, "Yes", messages=1)
    serve(run, account)
    assert not Run.objects.filter(kind=Run.Kind.SECOND).exists()
    hear(account, "So?", chat=who.address)  # whatever comes in has all that waits worked on
    serve(Run.objects.get(kind=Run.Kind.SECOND), account)
    assert [line["text"] for line in stage.delivered(account)][2:] == ["Second"]


def test_who_is_archived_in_the_middle_of_a_run_gets_nothing(stage: Stage) -> None:
    account = stage.account(group_concurrency=1)
    people = stage.recipients(2)
    run = stage.fire(account, to=people)
    Recipient.objects.filter(pk=people[1].pk).update(archived_at=run.fired_at)
    serve(run, account)
    assert counted(run) == {"sent": 1, "skipped": 1}
    assert {line["to"] for line in stage.received(account)} == {people[0].address}


def bounce_after(stage: Stage, account: Account, run: Run, *, messages: int) -> None:
    """Report the first part as bounced once it is written down, while the pump still works."""
    thread = threading.Thread(target=pump.pump, args=(account.pk,))
    thread.start()
    while thread.is_alive() and not run.targets.exclude(provider_id="").exists():
        thread.join(0.005)
    told = run.targets.exclude(provider_id="").get().provider_id
    bounced = Receipt(
        event_id=f"bounce-{told}", provider_id=told, state=ReceiptState.BOUNCED, at=timezone.now()
    )
    store.store(account, [bounced])
    replies.work(account.pk)
    thread.join()
    assert len(stage.received(account)) == messages


def test_a_bounce_of_the_first_part_keeps_the_others_back(stage: Stage, quick: Settings) -> None:
    quick.PART_GAP_MIN_MS = quick.PART_GAP_MAX_MS = 900
    account = stage.account(group_concurrency=1)
    (who,) = stage.recipients(1)
    run = stage.fire(account, to=[who], parts=3)
    bounce_after(stage, account, run, messages=1)
    serve(run, account)
    assert counted(run) == {"skipped": 1}
    assert run.targets.get().error == "undeliverable"
    add_up(run)

    with pytest.raises(NothingToSendError, match="undeliverable"):  # nothing goes there again
        stage.fire(account, to=[who])
    assert len(stage.received(account)) == 1
