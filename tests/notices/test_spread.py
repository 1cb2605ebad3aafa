"""Notifications reach the addresses and team members that want them, in the transaction of the change."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from accounts.models import TeamMate, User
from activity.models import Notification, NotificationOutbox
from activity.notify import DECIDE, tell
from delivery import lifecycle
from delivery.models import Run
from delivery.states import PauseReason
from notices import spread
from notices.models import Notice, NoticeAddress
from tests.factories import (
    FollowFactory,
    NoticeAddressFactory,
    NoticeFactory,
    OperatorFactory,
    RunFactory,
)

pytestmark = pytest.mark.django_db

Kind = Notification.Kind
BODY = f"Rent is due: 640 of 1000 groups delivered.{DECIDE}"


def told(owner: User, kind: Kind = Kind.PAUSED, *, key: str = "run:1:paused:1", **more: Any) -> None:
    tell(owner.pk, kind, key=key, title="Reminder paused", body=BODY, url="/reminders/1/", **more)


def passed_on() -> None:
    while spread.spread():
        pass


@pytest.fixture
def address(owner: User) -> NoticeAddress:
    return NoticeAddressFactory.create(person=owner)


@pytest.fixture
def run(owner: User) -> Run:
    return RunFactory.create(reminder__owner=owner, paused=True)


def test_a_notification_becomes_a_notice_of_each_address_that_wants_its_kind(
    owner: User, address: NoticeAddress
) -> None:
    NoticeAddressFactory.create(person=owner, kinds=["failed"])
    NoticeAddressFactory.create(person=owner, unconfirmed=True)
    NoticeAddressFactory.create(person=owner, switched_off_at=timezone.now())
    NoticeAddressFactory.create()
    told(owner)
    assert spread.spread() == 1
    notice = Notice.objects.get()
    assert (notice.address, notice.kind, notice.subject) == (address, "paused", "run:1")
    assert (notice.title, notice.body, notice.url) == ("Reminder paused", BODY, "/reminders/1/")
    assert not NotificationOutbox.objects.exists()
    assert spread.spread() == 0


def test_what_is_rolled_back_is_told_to_nobody(owner: User, address: NoticeAddress) -> None:
    with transaction.atomic():
        told(owner)
        transaction.set_rollback(True)
    assert spread.spread() == 0
    assert not Notification.objects.exists()


def test_a_run_that_pauses_is_in_the_outbox_with_its_change(owner: User, address: NoticeAddress) -> None:
    run = RunFactory.create(reminder__owner=owner, targets=2)
    with transaction.atomic():
        lifecycle.pause(run, reason=PauseReason.OPERATOR, by=owner)
        assert NotificationOutbox.objects.filter(notification__run=run).count() == 1


def test_a_flapping_run_waits_as_one_notice(owner: User, address: NoticeAddress) -> None:
    for number in range(100):
        told(owner, key=f"run:1:paused:{number}")
    passed_on()
    notice = Notice.objects.get()
    assert notice.number == 100


def test_after_one_was_sent_the_same_waits_half_an_hour(owner: User, address: NoticeAddress) -> None:
    sent = NoticeFactory.create(address=address, sent=True, kind="paused", subject="run:1")
    told(owner)
    told(owner, Kind.FAILED, key="run:1:failed:1")
    passed_on()
    waiting = {notice.kind: notice.due_at for notice in Notice.objects.filter(state="pending")}
    assert sent.ended_at is not None
    assert waiting["paused"] == sent.ended_at + timedelta(minutes=30)
    assert waiting["failed"] <= timezone.now()


def test_a_mate_gets_what_the_owner_gets_only_by_choice(owner: User, mate: User, run: Run) -> None:
    told(owner, run_id=run.pk)
    passed_on()
    assert not Notification.objects.filter(owner=mate).exists()
    FollowFactory.create(person=mate, owner=owner)
    address = NoticeAddressFactory.create(person=mate)
    told(owner, key="run:1:paused:2", run_id=run.pk)
    passed_on()
    made = Notification.objects.get(owner=mate)
    assert (made.title, made.body, made.run) == ("Reminder paused (owner)", BODY, run)
    assert Notice.objects.get().address == address


def test_who_may_only_read_is_not_told_to_decide(owner: User, reader: User, run: Run) -> None:
    FollowFactory.create(person=reader, owner=owner)
    for number, kind in enumerate((Kind.PAUSED, Kind.APPROVAL, Kind.WAITING)):
        told(owner, kind, key=f"run:{run.pk}:{number}", run_id=run.pk)
    passed_on()
    made = Notification.objects.get(owner=reader)
    assert (made.kind, made.body, made.run) == (
        "paused",
        "Rent is due: 640 of 1000 groups delivered.",
        None,
    )


def test_a_mate_who_was_removed_or_deactivated_gets_nothing(owner: User, mate: User, reader: User) -> None:
    for person in (mate, reader):
        FollowFactory.create(person=person, owner=owner)
    TeamMate.objects.filter(mate=mate).delete()
    User.objects.filter(pk=reader.pk).update(is_active=False)
    told(owner)
    passed_on()
    assert not Notification.objects.exclude(owner=owner).exists()


def test_people_who_follow_each_other_do_not_tell_each_other_for_ever(owner: User, mate: User) -> None:
    TeamMate.objects.create(owner=mate, mate=owner)
    FollowFactory.create(person=mate, owner=owner)
    FollowFactory.create(person=owner, owner=mate)
    told(owner)
    passed_on()
    assert Notification.objects.count() == 2


def test_an_owner_with_very_many_does_not_keep_others_waiting(owner: User) -> None:
    for number in range(spread.EACH * 3):
        told(owner, key=f"run:{number}:paused")
    other = OperatorFactory.create()
    told(other)
    spread.spread()
    assert not NotificationOutbox.objects.filter(notification__owner=other).exists()
    assert NotificationOutbox.objects.filter(notification__owner=owner).count() == spread.EACH * 2


def test_a_deactivated_person_is_told_nothing_outside(owner: User, address: NoticeAddress) -> None:
    User.objects.filter(pk=owner.pk).update(is_active=False)
    told(owner)
    passed_on()
    assert not Notice.objects.exists()


@pytest.mark.parametrize(
    ("key", "subject"),
    [
        ("run:7:paused:3:0:0:7", "run:7"),
        ("team:5:run:7:paused", "run:7"),
        ("account:3:20261119", "account:3"),
        ("webhook:3:20261119", "webhook:3"),
        ("plain", "plain"),
    ],
)
def test_the_beginning_of_a_key_says_what_it_is_about(key: str, subject: str) -> None:
    assert spread.subject_of(key) == subject
