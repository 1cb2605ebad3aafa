"""A run that waits for a person: the owner again, then one mate after the other, and never who cannot decide."""

from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest
import time_machine
from django.utils import timezone
from pytest_django import Settings

from accounts.models import Account, TeamMate, User
from activity.models import Notification
from delivery import lifecycle, notifications
from delivery.models import Run
from delivery.states import PauseReason
from notices import escalate, spread
from notices.models import AccountEscalation, Escalation
from tests.factories import AccountFactory, PreferencesFactory, RunFactory, TeamMateFactory

pytestmark = pytest.mark.django_db

NOW = timezone.now()


@pytest.fixture(autouse=True)
def begins_now(traveling: None) -> Iterator[None]:
    """Let each test begin at NOW, however long after this module was read it runs."""
    with time_machine.travel(NOW, tick=True):
        yield


def waiting(owner: User, **more: object) -> Run:
    run: Run = RunFactory.create(reminder__owner=owner, paused=True, summary="3 of 10 delivered.", **more)
    escalate.begin(run, now=NOW)
    return run


def told_after(minutes: int) -> list[str]:
    """The people who are told again, in the order of their minutes."""
    for minute in range(0, minutes + 1, 5):
        escalate.escalate(NOW + timedelta(minutes=minute))
    rows = Notification.objects.filter(kind="waiting").order_by("pk")
    return [made.owner.username for made in rows.select_related("owner")]


@pytest.fixture
def second(owner: User) -> User:
    return TeamMateFactory.create(owner=owner, mate__username="second", send=True).mate


def order(owner: User, *people: User) -> None:
    PreferencesFactory.create(person=owner, next_people=[person.pk for person in people])


def test_the_owner_is_told_again_after_half_an_hour_and_then_each_mate_in_order(
    owner: User, mate: User, second: User
) -> None:
    order(owner, second, mate)
    waiting(owner)
    assert told_after(29) == []
    assert told_after(30) == ["owner"]
    assert told_after(60) == ["owner", "second"]
    assert told_after(300) == ["owner", "second", "mate"]


def test_it_says_how_long_whose_and_why(owner: User, mate: User) -> None:
    order(owner, mate)
    run = waiting(owner)
    told_after(60)
    first, last = Notification.objects.filter(kind="waiting").order_by("pk")
    assert first.title == f"{run.name} waits for you"
    assert first.body == "Nobody has decided for 30 minutes. 3 of 10 delivered."
    assert last.body == "Nobody has decided for 60 minutes. It is owner's. 3 of 10 delivered."
    assert (last.run, last.url) == (run, f"/reminders/{run.reminder_id}/")


def test_a_mate_who_left_is_inactive_or_may_only_read_is_passed_over(
    owner: User, mate: User, second: User, reader: User
) -> None:
    third = TeamMateFactory.create(owner=owner, mate__username="third", send=True).mate
    order(owner, reader, mate, second, third)
    waiting(owner)
    TeamMate.objects.filter(mate=mate).delete()
    User.objects.filter(pk=second.pk).update(is_active=False)
    assert told_after(300) == ["owner", "third"]


def test_a_mate_who_was_put_in_front_meanwhile_is_next(owner: User, mate: User, second: User) -> None:
    order(owner, mate)
    waiting(owner)
    told_after(30)
    owner.notice_preferences.next_people = [second.pk, mate.pk]
    owner.notice_preferences.save()
    assert told_after(300) == ["owner", "second", "mate"]


def test_where_the_owner_was_deactivated_the_first_mate_is_told_at_once(owner: User, mate: User) -> None:
    order(owner, mate)
    waiting(owner)
    User.objects.filter(pk=owner.pk).update(is_active=False)
    assert told_after(30) == ["mate"]


def test_a_run_that_goes_on_is_told_to_nobody(owner: User, mate: User) -> None:
    order(owner, mate)
    run = waiting(owner)
    told_after(30)
    Run.objects.filter(pk=run.pk).update(status="running", pause_reason="")
    assert told_after(300) == ["owner"]


def test_a_run_that_waits_again_begins_with_its_owner(owner: User, mate: User) -> None:
    order(owner, mate)
    run = waiting(owner)
    told_after(30)
    Run.objects.filter(pk=run.pk).update(status="running", pause_reason="")
    escalate.escalate(NOW + timedelta(minutes=60))
    Run.objects.filter(pk=run.pk).update(status="paused", pause_reason="window_closed")
    escalate.escalate(NOW + timedelta(minutes=90))
    assert told_after(0) == ["owner", "owner"]


def test_a_run_that_has_ended_is_forgotten(owner: User) -> None:
    run = waiting(owner)
    Run.objects.filter(pk=run.pk).update(status="canceled", pause_reason="", finished_at=NOW)
    assert told_after(60) == []
    assert not Escalation.objects.exists()


@pytest.mark.parametrize(
    ("reason", "opens", "needs"),
    [
        (PauseReason.WINDOW_CLOSED, False, True),
        (PauseReason.WINDOW_CLOSED, True, False),
        (PauseReason.ERROR_RATE, False, True),
        (PauseReason.DAILY_CAP, False, True),
        (PauseReason.OPERATOR, False, False),
        (PauseReason.ACCOUNT_OFFLINE, False, False),
        (PauseReason.ACCOUNT_FLAGGED, False, True),
    ],
)
def test_a_person_is_needed_where_it_does_not_go_on_by_itself(
    reason: PauseReason, *, opens: bool, needs: bool
) -> None:
    opens_at: datetime | None = NOW if opens else None
    run = RunFactory.create(paused=True, pause_reason=reason, opens_at=opens_at)
    assert escalate.needs_a_person(run) is needs


def test_the_owner_chooses_the_minutes_and_may_switch_it_off(owner: User, settings: Settings) -> None:
    PreferencesFactory.create(person=owner, escalate_minutes=5)
    waiting(owner)
    assert told_after(5) == ["owner"]
    owner.notice_preferences.escalate_minutes = 0
    owner.notice_preferences.save()
    owner.refresh_from_db()
    waiting(owner)
    assert told_after(300) == ["owner"]
    settings.ESCALATE_AFTER_MINUTES = 0
    assert escalate.minutes_of(User.objects.get(pk=owner.pk)) == 0


def test_the_notification_of_the_pause_begins_it(owner: User) -> None:
    run = RunFactory.create(reminder__owner=owner, targets=2)
    Run.objects.filter(pk=run.pk).update(status="paused", pause_reason="error_rate")
    run.refresh_from_db()
    notifications.run_changed(run)
    spread.spread()
    assert Escalation.objects.get().run == run


def in_doubt(owner: User, **more: object) -> Run:
    """A run that has ended, with messages of which nobody knows whether they arrived."""
    run: Run = RunFactory.create(reminder__owner=owner, partial=True, failed=0, unconfirmed=2, **more)
    run.summary = "2 in doubt."
    run.save()
    return run


def test_messages_in_doubt_are_told_again_until_somebody_has_decided(owner: User, mate: User) -> None:
    order(owner, mate)
    run = in_doubt(owner)
    notifications.run_changed(run)
    spread.spread()
    assert told_after(35) == ["owner"]
    made = Notification.objects.get(kind="waiting")
    assert made.url == f"/reminders/{run.reminder_id}/runs/{run.pk}/"
    assert "2 in doubt." in made.body
    Run.objects.filter(pk=run.pk).update(sent=3, unconfirmed=0, status="success")
    assert told_after(300) == ["owner"]
    assert not Escalation.objects.exists()


def test_a_run_that_was_archived_with_messages_in_doubt_asks_nobody(owner: User) -> None:
    assert not escalate.needs_a_person(in_doubt(owner, archived_at=NOW))


class TestAccounts:
    def stopped(self, owner: User, status: str = "flagged") -> Account:
        account: Account = AccountFactory.create(owner=owner, name="Support", status="active")
        lifecycle.stop_account(account, status=status, reason="logged out by WhatsApp")
        spread.spread()
        return account

    def test_one_that_was_logged_out_is_told_again_and_to_those_who_can_connect_it(
        self, owner: User, mate: User, second: User
    ) -> None:
        order(owner, second, mate)
        account = self.stopped(owner)
        assert told_after(35) == ["owner"]
        assert told_after(300) == ["owner", "mate"]
        first = Notification.objects.filter(kind="waiting").order_by("pk")[0]
        assert first.title == "Support waits for you"
        assert "logged out by WhatsApp." in first.body
        assert first.url == f"/accounts/{account.pk}/"

    def test_one_that_only_has_no_connection_comes_back_by_itself(self, owner: User) -> None:
        self.stopped(owner, "offline")
        assert not AccountEscalation.objects.exists()

    def test_one_that_works_again_is_forgotten_and_begins_anew(self, owner: User) -> None:
        account = self.stopped(owner)
        lifecycle.start_account(account)
        assert told_after(35) == []
        assert not AccountEscalation.objects.exists()
        Notification.objects.all().delete()  # else both stops would be within the same second
        lifecycle.stop_account(account, status="flagged", reason="blocked")
        spread.spread()
        assert AccountEscalation.objects.get().told == []

    def test_it_is_not_told_beside_its_own_run_that_waits(self, owner: User) -> None:
        run = RunFactory.create(reminder__owner=owner, targets=2)
        account = run.run_accounts.get().account
        lifecycle.stop_account(account, status="flagged", reason="blocked")
        spread.spread()
        assert (Escalation.objects.count(), AccountEscalation.objects.count()) == (1, 1)
        assert told_after(35) == ["owner"]
        assert Notification.objects.get(kind="waiting").run is not None
