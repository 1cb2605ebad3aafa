"""A reply: found, shown, and what it changes for its recipient."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone
from pytest_django.asserts import assertContains

from accounts.models import ConsentChange, Contact, Recipient
from activity.models import Inbound
from delivery.models import Run
from reminders.conversations import replies
from reminders.models import FollowUp
from tests.factories import AccountFactory, FollowUpFactory, InboundFactory, RecipientFactory
from tests.reminders.conversations.conversation import hear, reply, sent, sent_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis")]


def test_a_reply_belongs_to_the_last_message_that_had_left() -> None:
    now = timezone.now()
    old = sent(second=0, at=now - timedelta(hours=3))
    last = sent_of(
        old.run.reminder, recipient=old.recipient, account=old.account, at=now - timedelta(hours=1)
    )
    assert reply(last).target == last
    assert reply(last, at=now - timedelta(hours=2)).target == old
    assert reply(last, at=now - timedelta(hours=4)).target is None


def test_a_reply_lifts_all_that_silence_brought() -> None:
    target = sent(second=0)
    who = Recipient.objects.filter(pk=target.recipient_id)
    until = timezone.now() + timedelta(hours=40)
    who.update(attempts=3, cooldown_until=until, not_interested_at=timezone.now())
    said = reply(target)
    recipient = who.get()
    assert (recipient.attempts, recipient.cooldown_until, recipient.not_interested_at) == (0, None, None)
    assert recipient.last_inbound_at == said.at
    assert recipient.attempts_reset_at is not None


def test_a_reply_is_remembered_as_a_talk_with_its_account() -> None:
    target = sent(second=0)
    said = reply(target)
    reply(target, at=said.at - timedelta(hours=1))
    contact = Contact.objects.get()
    assert (contact.recipient_id, contact.account_id) == (target.recipient_id, target.account_id)
    assert contact.talked_at == said.at


def test_a_reply_that_is_told_late_does_not_turn_back_the_clock() -> None:
    target = sent(second=0, at=timezone.now() - timedelta(hours=5))
    last = reply(target)
    reply(target, at=timezone.now() - timedelta(hours=2))
    target.recipient.refresh_from_db()
    assert target.recipient.last_inbound_at == last.at


def test_a_reply_takes_back_queued_follow_ups_with_the_reason() -> None:
    target = sent(second=0)
    mine = FollowUpFactory.create(target=target)
    other = FollowUpFactory.create()
    reply(target)
    mine.refresh_from_db()
    other.refresh_from_db()
    assert (mine.status, mine.removed_reason) == ("removed", "replied")
    assert mine.ended_at is not None
    assert other.status == FollowUp.Status.QUEUED


def test_stop_opts_out_at_once_and_says_how() -> None:
    target = sent(second=1)
    reply(target, "Stop!")
    target.recipient.refresh_from_db()
    assert target.recipient.opted_out_at is not None
    assert ConsentChange.objects.get().how == "replied STOP"
    assert not Run.objects.filter(kind=Run.Kind.SECOND).exists()


def test_stop_twice_is_recorded_once() -> None:
    target = sent(second=0)
    reply(target, "STOP", event="the-same")
    reply(target, "STOP", event="the-same")
    reply(target, "stop")
    assert ConsentChange.objects.count() == 1


def test_a_stop_word_in_a_sentence_is_a_reply_like_any_other() -> None:
    target = sent(second=0)
    reply(target, "Do not stop, I like this")
    target.recipient.refresh_from_db()
    assert target.recipient.opted_out_at is None


def test_stop_in_a_group_opts_out_who_said_it_and_not_the_group() -> None:
    account = AccountFactory.create()
    choir = RecipientFactory.create(owner=account.owner, group=True)
    member = RecipientFactory.create(owner=account.owner)
    hear(account, "STOP", chat=choir.address, sender=member.address)
    choir.refresh_from_db()
    member.refresh_from_db()
    assert choir.opted_out_at is None
    assert member.opted_out_at is not None
    hear(account, "STOP", chat=choir.address, sender="60199999999@c.us")
    choir.refresh_from_db()
    assert choir.opted_out_at is None


def test_stop_in_a_room_with_one_person_opts_out_the_room() -> None:
    account = AccountFactory.create(channel="matrix")
    room = RecipientFactory.create(
        owner=account.owner, channel="matrix", kind="room", address="!anna:matrix.example"
    )
    hear(account, "STOP", chat=room.address, sender="@anna:matrix.example")
    room.refresh_from_db()
    assert room.opted_out_at is None  # others may be there
    hear(account, "STOP", chat=room.address, sender="@anna:matrix.example", direct=True)
    room.refresh_from_db()
    assert room.opted_out_at is not None


def test_what_somebody_says_in_a_group_that_is_not_ours_is_no_reply() -> None:
    target = sent(second=1)
    heard = hear(
        target.account, "See you there", chat="120363040000000001@g.us", sender=target.recipient.address
    )
    assert (heard.recipient, heard.run) == (None, None)
    assert heard.handled_at is not None
    assert not Run.objects.filter(kind=Run.Kind.SECOND).exists()


@pytest.mark.django_db(transaction=True)
def test_two_replies_at_once_bring_one_second_message() -> None:
    target = sent(second=1)
    for _ in range(2):
        InboundFactory.create(account=target.account, chat=target.recipient.address, recipient=None)
    barrier = threading.Barrier(2)

    def work(inbound_id: int) -> None:
        barrier.wait(10)
        try:
            replies.take_up(inbound_id)
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(work, Inbound.objects.values_list("pk", flat=True)))
    assert not Inbound.objects.filter(handled_at=None).exists()
    assert Run.objects.filter(kind=Run.Kind.SECOND).count() == 1


def test_replies_are_on_the_pages_of_the_reminder_and_the_run(client: Client) -> None:
    target = sent(second=0)
    client.force_login(target.run.owner)
    reply(target, "A voice from outside")
    for page in (f"/reminders/{target.run.reminder_id}/", f"/runs/{target.run_id}/"):
        assertContains(client.get(page), "A voice from outside")
