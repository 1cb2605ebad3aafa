"""Stopping all sending: nothing leaves afterwards, every page says why, and starting continues it."""

from io import StringIO
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings
from redis import Redis

from accounts.models import Account, SendingStop, User
from delivery import conf
from delivery.engine import claims, pump, recording
from delivery.engine.next_run import STOPPED, next_turn
from delivery.engine.recording import Intent
from delivery.engine.sql import run as ask
from delivery.recovery import stop_sending
from delivery.states import RunStatus, WaitReason
from tests.delivery.stage import Stage, pumping, serve
from tests.factories import OperatorFactory

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis")]


def test_nothing_leaves_and_the_account_says_why_until_it_is_started(stage: Stage) -> None:
    account = stage.account()
    run = stage.fire(account, to=3)
    assert stop_sending.stop(None, reason="the server is moved") is True
    pump.pump(account.pk)
    account.refresh_from_db()
    run.refresh_from_db()
    assert (account.waiting_for, account.waiting_until) == (WaitReason.SENDING_STOPPED, None)
    assert (run.status, run.pending) == (RunStatus.RUNNING, 3)
    assert account.wake_at is not None
    assert stage.delivered(account) == []

    assert stop_sending.start(None) is True
    account.refresh_from_db()
    assert account.wake_at is not None
    assert account.wake_at <= timezone.now()
    assert serve(run, account).status == RunStatus.SUCCESS
    assert len(stage.delivered(account)) == 3


def test_a_stop_holds_what_is_in_a_pumps_hands(stage: Stage) -> None:
    """The last look of a claimed target comes after the stop."""
    account = stage.account()
    run = stage.fire(account, to=2)
    now = timezone.now()
    Account.objects.filter(pk=account.pk).update(fence=7)
    claimed = claims.claim(run.pk, account.pk, fence=7, most=2, now=now)
    intents = [Intent(target_id=c.target_id, part=0, fence=7, wished_at=now) for c in claimed]
    stop_sending.stop(stage.owner)
    wish = recording.begin(intents, now=now, guard=conf.window_guard(), tolerance=conf.clock_tolerance())
    assert ask(wish) == [None, None]
    stop_sending.start(stage.owner)
    assert None not in ask(wish)


def test_a_stop_in_the_middle_of_a_shift_lets_nothing_more_leave(stage: Stage) -> None:
    account = stage.account()
    stage.behave(account, latency_ms=30)
    run = stage.fire(account, to=200)
    with pumping(stage, account, after=5):
        stop_sending.stop(None)
    held = len(stage.delivered(account))
    assert held < 200
    pump.pump(account.pk)
    assert len(stage.delivered(account)) == held
    stop_sending.start(None)
    run.refresh_from_db()
    assert run.sent == held
    assert run.unconfirmed == 0


def test_the_stop_of_one_owner_holds_nobody_else(stage: Stage) -> None:
    account = stage.account()
    run = stage.fire(account, to=1)
    other = OperatorFactory.create()
    stop_sending.stop(other)
    assert stop_sending.stop_of(stage.owner.pk) is None
    assert serve(run, account).status == RunStatus.SUCCESS


def test_a_worker_with_sending_off_sends_nothing_and_leaves_a_stop_behind(
    stage: Stage, settings: Settings
) -> None:
    account = stage.account()
    stage.fire(account, to=1)
    settings.SENDING = False
    assert next_turn(account, now=timezone.now(), busy=False) is STOPPED
    pump.pump(account.pk)
    assert stage.delivered(account) == []

    stop_sending.stop_if_off()
    stop_sending.stop_if_off()
    settings.SENDING = True
    found = stop_sending.stop_of(account.owner_id)
    assert found is not None
    assert found.sentence() == (
        "All sending is stopped: SENDING=off in the environment of a worker. "
        "Nothing is sent until somebody starts it again."
    )


def test_stopping_twice_is_one_stop_and_both_ends_are_recorded(staff: User) -> None:
    assert stop_sending.stop(None, reason="backup", by=staff) is True
    assert stop_sending.stop(None, reason="again", by=staff) is False
    assert stop_sending.start(None, by=staff) is True
    assert stop_sending.start(None, by=staff) is False
    row = SendingStop.objects.get()
    assert (row.reason, row.stopped_by, row.ended_by) == ("backup", staff, staff)
    assert row.ended_at is not None


def test_only_staff_stop_everybody_and_only_those_who_work_for_an_owner_theirs(
    owner: User, mate: User, reader: User, stranger: User, staff: User
) -> None:
    for person in (owner, mate, reader, stranger):
        with pytest.raises(PermissionDenied, match="You may not stop or start"):
            stop_sending.stop(None, by=person)
    for person in (reader, stranger):
        with pytest.raises(PermissionDenied, match="You may not stop or start"):
            stop_sending.stop(owner, by=person)
    for person in (owner, mate, staff):
        assert stop_sending.stop(owner, by=person) is True
        assert stop_sending.start(owner, by=person) is True


def test_the_page_stops_and_starts_and_every_page_says_so(
    client: Client, owner: User, staff: User, stranger: User, redis: Redis
) -> None:
    client.force_login(owner)
    assert "Everybody" not in client.get(reverse("sending")).content.decode()
    page = client.post(
        reverse("sending"), {"whose": owner.pk, "to": "stop", "reason": "wrong text"}, follow=True
    )
    assert "Sending is stopped. No messages are sent." in page.content.decode()
    sentence = "All sending of owner is stopped by owner: wrong text. Nothing is sent until"
    assert sentence in client.get(reverse("dashboard")).content.decode()

    client.force_login(stranger)
    assert sentence not in client.get(reverse("dashboard")).content.decode()
    assert client.post(reverse("sending"), {"whose": owner.pk, "to": "start"}).status_code == 404
    assert client.post(reverse("sending"), {"whose": "all", "to": "stop"}).status_code == 403

    client.force_login(staff)
    assert sentence in client.get(reverse("dashboard")).content.decode()
    assert sentence in client.get(reverse("admin:index")).content.decode()
    client.post(reverse("sending"), {"whose": "all", "to": "stop"})
    client.force_login(stranger)
    assert "All sending is stopped by staff." in client.get(reverse("dashboard")).content.decode()
    client.force_login(staff)
    for whose in ("all", owner.pk):
        client.post(reverse("sending"), {"whose": whose, "to": "start"})
    page = client.get(reverse("sending"))
    assert "is stopped by" not in page.content.decode()
    assert " started again" in page.content.decode()


@pytest.mark.parametrize("whose", ["", "everybody", "0", "999999", "all\0", "-1", "9" * 30])
def test_a_page_that_names_nobody_stops_nothing(client: Client, staff: User, whose: str) -> None:
    client.force_login(staff)
    assert client.post(reverse("sending"), {"whose": whose, "to": "stop"}).status_code == 404
    assert not SendingStop.objects.exists()


def said(*arguments: Any) -> str:
    out = StringIO()
    call_command(*arguments, stdout=out)
    return out.getvalue().strip()


def test_commands_stop_and_start(owner: User, settings: Settings) -> None:
    assert said("stop_sending", "--reason", "backup").startswith("All sending is stopped. `start_sending`")
    assert said("stop_sending").startswith("All sending is stopped already.")
    assert said("stop_sending", "--owner", "owner").startswith("Sending of owner is stopped.")
    assert said("start_sending", "--owner", "owner", "--as", "owner") == "Sending of owner continues."
    settings.SENDING = False
    assert said("start_sending").startswith(
        "All sending continues.\nWorkers that run with SENDING=off still send"
    )
    with pytest.raises(CommandError, match="You may not stop or start"):
        said("stop_sending", "--as", "owner")
    with pytest.raises(CommandError, match="There is no user nobody"):
        said("stop_sending", "--owner", "nobody")
