"""Replies, entry, hygiene and sending at the same moment, each on a connection of its own."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.utils import timezone
from pytest_django import Settings

from accounts.models import ConsentChange, Recipient
from accounts.recipients import consent
from activity.models import Inbound
from delivery.models import Run, RunTarget
from reminders.conversations import replies
from reminders.follow_ups import entry, hygiene, sending
from reminders.follow_ups.take_back import reply_came
from reminders.follow_ups.tick import tick
from reminders.models import FollowUp
from tests.delivery.stage import add_up
from tests.factories import FollowUpFactory, InboundFactory
from tests.reminders.conversations.conversation import reply, sent, sent_of
from tests.reminders.follow_ups.test_follow_ups import asking, hours, queued

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis")]

PATIENCE = 20  # seconds after which something hangs


def at_once(*work: Callable[[], object]) -> None:
    """Run the functions in threads that begin together; raise here what one of them raises."""
    barrier = threading.Barrier(len(work))

    def begin(each: Callable[[], object]) -> None:
        barrier.wait(PATIENCE)
        try:
            each()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(work)) as pool:
        for done in [pool.submit(begin, each) for each in work]:
            done.result(PATIENCE)


def heard(target: RunTarget, text: str = "Hello", **values: object) -> Inbound:
    """A message that waits to be worked on."""
    return InboundFactory.create(
        account=target.account, chat=target.recipient.address, recipient=None, text=text, **values
    )


def take_up(*messages: Inbound) -> list[Callable[[], object]]:
    return [lambda pk=message.pk: replies.take_up(pk) for message in messages]  # type: ignore[misc]


def test_the_same_message_taken_up_by_many_workers_changes_things_once() -> None:
    target = sent(second=1)
    message = heard(target)
    at_once(*take_up(*[message] * 5))
    assert Run.objects.filter(kind=Run.Kind.SECOND).count() == 1


def test_stop_and_a_reply_at_once_never_leave_a_second_message_that_is_sent() -> None:
    target = sent(second=1)
    at_once(*take_up(heard(target, "STOP"), heard(target, "Yes please")))
    target.recipient.refresh_from_db()
    assert target.recipient.opted_out_at is not None
    assert ConsentChange.objects.count() == 1
    # Made before the STOP was heard or not at all; `begin` lets none leave after it.
    assert Run.objects.filter(kind=Run.Kind.SECOND).count() <= 1


def test_opting_out_and_in_at_once_leave_a_record_of_each_change() -> None:
    target = sent(second=0)
    who = [Recipient.objects.get(pk=target.recipient_id) for _ in range(4)]
    at_once(
        lambda: consent.opt_out(who[0], how="replied STOP"),
        lambda: consent.opt_in(who[1], how="asked for it", by=None),
        lambda: consent.opt_out(who[2], how="replied STOP"),
        lambda: consent.opt_in(who[3], how="asked for it", by=None),
    )
    moves = list(ConsentChange.objects.order_by("id").values_list("move", flat=True))
    assert moves == ["out", "in"] * (len(moves) // 2) + ["out"] * (len(moves) % 2)
    target.recipient.refresh_from_db()
    assert (target.recipient.opted_out_at is not None) == (len(moves) % 2 == 1)


def test_hygiene_does_not_wait_for_a_reply_that_waits_for_hygiene() -> None:
    target = sent(second=0)
    FollowUpFactory.create(target=target)
    Recipient.objects.filter(pk=target.recipient_id).update(attempts=3)
    held, cleaned = threading.Event(), threading.Event()

    def speak() -> None:
        with transaction.atomic():
            recipient = Recipient.objects.select_for_update(no_key=True).get(pk=target.recipient_id)
            held.set()
            cleaned.wait(3)
            Recipient.objects.filter(pk=recipient.pk).update(attempts=0)
            reply_came(recipient)

    def clean() -> None:
        held.wait(PATIENCE)
        hygiene.clean()
        cleaned.set()

    at_once(speak, clean)
    target.recipient.refresh_from_db()
    assert (target.recipient.attempts, target.recipient.cooldown_until) == (0, None)
    assert FollowUp.objects.get().status == FollowUp.Status.REMOVED


@pytest.mark.parametrize("room", [1, 2, 5])
def test_the_queue_never_passes_its_maximum_however_many_let_others_in(settings: Settings, room: int) -> None:
    settings.FOLLOW_UP_MAX_QUEUE_SIZE = room
    reminder = asking("high", "high")
    for _ in range(12):
        sent_of(reminder, at=hours(-1))
    most: list[int] = []

    def watch() -> None:
        most.extend(queued() for _ in range(60))

    at_once(entry.enter, entry.enter, entry.enter, entry.enter, hygiene.clean, watch)
    assert queued() == room
    assert max(most) <= room


def test_a_reply_before_or_after_its_follow_up_is_handed_over_takes_it_back() -> None:
    targets = [sent_of(asking(), at=hours(-25)) for _ in range(6)]
    entry.enter()
    at_once(sending.send_due, *take_up(*[heard(target) for target in targets]), sending.send_due)
    assert set(FollowUp.objects.values_list("status", "removed_reason")) == {("removed", "replied")}
    for run in Run.objects.filter(kind=Run.Kind.FOLLOW_UP):
        assert (run.pending, run.sending, run.sent) == (0, 0, 0)
        add_up(run)


def test_everything_at_once_keeps_the_rules() -> None:
    reminder = asking("high", "high", "high", after=1)
    targets = [sent_of(reminder, at=hours(-2)) for _ in range(8)]
    replies = [heard(target, "STOP" if number % 3 == 0 else "Hi") for number, target in enumerate(targets)]
    for target in targets[::2]:
        Recipient.objects.filter(pk=target.recipient_id).update(attempts=3)
    at_once(tick, tick, hygiene.clean, hygiene.take_back, hygiene.end_cooldowns, *take_up(*replies), tick)
    assert not Inbound.objects.filter(handled_at=None).exists()
    assert not FollowUp.objects.filter(status__in=["queued", "sending"]).exists()
    assert set(Recipient.objects.values_list("attempts", "cooldown_until")) == {(0, None)}
    assert Recipient.objects.filter(opted_out_at__isnull=False).count() == 3
    for run in Run.objects.filter(kind=Run.Kind.FOLLOW_UP):
        assert run.pending == run.sending == 0
        add_up(run)


def test_a_recipient_whom_two_reminders_follow_up_is_asked_three_times_in_all() -> None:
    person = sent_of(asking("high", "high", "high", after=1), at=hours(-3))
    sent_of(
        asking("high", "high", "high", after=1, owner=person.run.owner),
        recipient=person.recipient,
        at=hours(-3),
    )
    left = 0
    for _ in range(10):
        at_once(tick, tick, tick)
        on_its_way = RunTarget.objects.filter(run__kind=Run.Kind.FOLLOW_UP, status="pending")
        assert on_its_way.count() <= 1
        for made in on_its_way:
            left += 1
            _land(made)
        FollowUp.objects.filter(status="queued").update(due_at=timezone.now())
    person.recipient.refresh_from_db()
    assert left == person.recipient.attempts == 3
    assert person.recipient.cooldown_until is not None


def _land(target: RunTarget) -> None:
    rows = RunTarget.objects.filter(pk=target.pk)
    rows.update(status="sending", fence=1, claimed_at=timezone.now())
    rows.update(status="sent", claimed_at=None, settled_at=timezone.now())
    Run.objects.filter(pk=target.run_id).update(
        pending=0, sent=1, status="success", finished_at=timezone.now()
    )


def test_a_late_report_of_the_same_stop_does_not_undo_an_opt_in() -> None:
    target = sent(second=0, at=timezone.now() - timedelta(hours=1))
    reply(target, "STOP", event="the-same")
    consent.opt_in(target.recipient, how="asked for it", by=None)
    reply(target, "STOP", event="the-same")
    target.recipient.refresh_from_db()
    assert target.recipient.opted_out_at is None
