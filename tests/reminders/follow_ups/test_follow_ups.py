"""The queue of follow-ups: who enters, who is dropped and why, what is sent, and what a reply takes back."""

from datetime import datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.test import override_settings
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pytest_django import Settings

from accounts.models import Account, Recipient, User
from delivery.models import Run, RunTarget
from reminders.follow_ups import entry, hygiene, queue, rules, sending
from reminders.follow_ups.tick import tick
from reminders.models import FollowUp, Reminder, ReminderAccount
from tests.delivery.stage import add_up
from tests.factories import (
    AccountFactory,
    AttemptFactory,
    FollowUpFactory,
    FollowUpStepFactory,
    OperatorFactory,
    RecipientFactory,
    ReminderFactory,
    RunTargetFactory,
)
from tests.reminders.conversations.conversation import reply, sent_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis")]

Status = FollowUp.Status


def asking(*urgencies: str, after: float = 24, **reminder: Any) -> Reminder:
    """A reminder that asks again, a step for each urgency."""
    made = ReminderFactory.create(window_start_hour=0, window_end_hour=24, **reminder)
    for position, urgency in enumerate(urgencies or ["medium"]):
        FollowUpStepFactory.create(
            reminder=made, position=position, urgency=urgency, after_hours=after, text=f"Step {position}"
        )
    return made


def hours(count: float) -> datetime:
    return timezone.now() + timedelta(hours=count)


def land(status: str = "sent", at: datetime | None = None) -> None:
    """The engine sends all that is on its way."""
    for run in Run.objects.open().filter(kind=Run.Kind.FOLLOW_UP):
        targets = RunTarget.objects.filter(run=run, status="pending")
        number = targets.count()
        targets.update(status="sending", fence=1, claimed_at=timezone.now())
        RunTarget.objects.filter(run=run, status="sending").update(
            status=status, claimed_at=None, settled_at=at or timezone.now()
        )
        run.pending -= number
        setattr(run, status, getattr(run, status) + number)
        run.status = "success" if status == "sent" else "failed"
        run.save()


def queued() -> int:
    return FollowUp.objects.filter(status=Status.QUEUED).count()


def fill(number: int, urgency: str = "low", **recipient: Any) -> User:
    """So many in the queue of one owner, quickly; whose."""
    target = RunTargetFactory.create(sent=True)
    step = FollowUpStepFactory.create(reminder=target.run.reminder, urgency=urgency)
    owner = target.run.owner
    people = RecipientFactory.build_batch(number, owner=owner, **recipient)
    targets = [
        RunTarget(
            run=target.run, account=target.account, recipient=person, status="sent", settled_at=hours(-1)
        )
        for person in Recipient.objects.bulk_create(people)
    ]
    FollowUp.objects.bulk_create(
        [
            FollowUp(step=step, target=made, recipient=made.recipient, urgency=urgency, due_at=hours(1))
            for made in RunTarget.objects.bulk_create(targets)
        ]
    )
    return owner


# Entry


def test_a_message_without_a_reply_is_followed_up_after_its_time() -> None:
    target = sent_of(asking(after=24))
    assert entry.enter() == 1
    waiting = FollowUp.objects.get()
    assert waiting.target == target
    assert target.settled_at is not None
    assert waiting.due_at == target.settled_at + timedelta(hours=24)
    assert entry.enter() == 0


def test_a_reminder_without_steps_follows_nobody_up() -> None:
    sent_of(ReminderFactory.create())
    assert entry.enter() == 0


@pytest.mark.parametrize("state", [{"status": "off"}, {"archived_at": "2026-01-01T00:00Z"}])
def test_a_reminder_that_somebody_stopped_asks_nobody(state: dict[str, str]) -> None:
    sent_of(asking())
    Reminder.objects.update(**state)
    assert entry.enter() == 0


def test_who_has_replied_already_is_not_asked_and_the_reason_is_kept() -> None:
    target = sent_of(asking())
    reply(target)
    assert entry.enter() == 0
    assert FollowUp.objects.get().removed_reason == "replied"


def test_who_replied_while_the_message_was_still_landing_is_not_asked() -> None:
    landed_at = hours(-1)
    target = sent_of(asking(), at=landed_at)
    AttemptFactory.create(target=target, at=landed_at - timedelta(seconds=20))
    reply(target, at=landed_at - timedelta(seconds=10))
    assert entry.enter() == 0
    assert FollowUp.objects.get().removed_reason == "replied"


def test_above_the_threshold_only_high_urgency_enters_and_waits_longer(settings: Settings) -> None:
    settings.FOLLOW_UP_BACKPRESSURE_THRESHOLD = 2
    owner = fill(2)
    sent_of(asking("medium", owner=owner))
    assert entry.enter() == 1  # the one that passes the threshold
    for urgency in ("medium", "low"):
        sent_of(asking(urgency, owner=owner))
    assert entry.enter() == 0
    target = sent_of(asking("high", after=10, owner=owner))
    assert entry.enter() == 1
    waiting = FollowUp.objects.get(target=target)
    assert target.settled_at is not None
    assert timedelta(hours=12) <= waiting.due_at - target.settled_at <= timedelta(hours=14)


def test_a_full_queue_takes_nobody_and_what_waited_outside_enters_later(settings: Settings) -> None:
    settings.FOLLOW_UP_MAX_QUEUE_SIZE = 3
    reminder = asking("high", owner=fill(2))
    for _ in range(3):
        sent_of(reminder)
    assert entry.enter() == 1
    assert queued() == 3
    assert entry.enter() == 0
    FollowUp.objects.filter(urgency="low").update(status="removed", removed_reason="opted out")
    assert entry.enter() == 2
    assert queued() == 3


def test_a_full_queue_of_one_owner_keeps_out_nobody_else(settings: Settings) -> None:
    settings.FOLLOW_UP_MAX_QUEUE_SIZE, settings.FOLLOW_UP_BACKPRESSURE_THRESHOLD = 3, 2
    crowded = fill(3)
    for _ in range(4):
        sent_of(asking("high", owner=crowded))
    other = sent_of(asking("low", after=10))
    assert entry.enter() == 1
    waiting = FollowUp.objects.get(target=other)
    assert other.settled_at is not None
    assert waiting.due_at - other.settled_at == timedelta(hours=10)  # and no longer than that


def test_the_many_of_one_owner_do_not_fill_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry, "BATCH", 4)
    crowded = OperatorFactory.create()
    for _ in range(6):
        sent_of(asking("high", owner=crowded), at=hours(-2))
    other = sent_of(asking("low"), at=hours(-1))
    assert entry.enter() == 4
    assert FollowUp.objects.filter(target=other).exists()


def test_the_due_ones_of_one_owner_do_not_fill_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "BATCH", 3)
    fill(5)
    FollowUp.objects.update(due_at=hours(-2))
    other = fill(1)
    FollowUp.objects.filter(recipient__owner=other).update(due_at=hours(-1))
    assert sending.send_due() == 3
    assert FollowUp.objects.get(recipient__owner=other).status == Status.SENDING


def test_what_found_no_room_for_a_day_is_given_up() -> None:
    sent_of(asking(after=24), at=hours(-49))
    assert entry.enter() == 0


def test_a_deleted_step_does_not_begin_again_with_those_who_got_it() -> None:
    reminder = asking()
    sent_of(reminder, at=hours(-25))
    tick()
    land()
    reminder.follow_up_steps.all().delete()
    FollowUpStepFactory.create(reminder=reminder, position=0)
    tick()
    assert Run.objects.filter(kind=Run.Kind.FOLLOW_UP).count() == 1


# Sending and counting


def test_a_due_follow_up_leaves_as_a_run_from_the_same_account() -> None:
    target = sent_of(asking(), at=hours(-25))
    tick()
    run = Run.objects.get(kind=Run.Kind.FOLLOW_UP)
    made = run.targets.get()
    assert (made.recipient_id, made.account_id) == (target.recipient_id, target.account_id)
    assert run.parts == [{"kind": "text", "text": "Step 0"}]
    assert run.status == "running"
    assert FollowUp.objects.get().sent_as == made


@pytest.mark.parametrize("status", ["flagged", "archived"])
def test_another_account_follows_up_where_the_first_cannot(status: str) -> None:
    reminder = asking()
    target = sent_of(reminder, at=hours(-30))
    other = AccountFactory.create(owner=reminder.owner)
    ReminderAccount.objects.filter(reminder=reminder).update(account=other)
    tied = sent_of(
        reminder,
        recipient=RecipientFactory.create(owner=reminder.owner, account=target.account),
        account=target.account,
        at=hours(-30),
    )
    stopped = {"archived_at": timezone.now()} if status == "archived" else {"status": status}
    Account.objects.filter(pk=target.account_id).update(**stopped)
    tick()
    senders = RunTarget.objects.filter(run__kind=Run.Kind.FOLLOW_UP).values_list("recipient_id", "account_id")
    assert dict(senders) == {target.recipient_id: other.pk, tied.recipient_id: target.account_id}


def test_all_that_say_the_same_share_a_run() -> None:
    reminder = asking()
    for _ in range(3):
        sent_of(reminder, at=hours(-25))
    tick()
    run = Run.objects.get(kind=Run.Kind.FOLLOW_UP)
    assert run.total == 3
    add_up(run)


def test_three_without_a_reply_and_then_a_cooldown_that_clears_by_itself() -> None:
    start = timezone.now()
    with time_machine.travel(start, tick=False) as clock:
        target = sent_of(asking("medium", "medium", "medium", "medium", after=10))
        for attempt in (1, 2, 3):
            clock.shift(timedelta(hours=11))
            tick()
            land()
            tick()
            target.recipient.refresh_from_db()
            assert target.recipient.attempts == attempt
        assert target.recipient.not_interested_at is not None
        assert target.recipient.cooldown_until == timezone.now() + timedelta(hours=48)
        assert FollowUp.objects.get(step__position=3).removed_reason == "cooling down"
        clock.shift(timedelta(hours=48))
        tick()
        rested = Recipient.objects.get(pk=target.recipient_id)
        assert (rested.attempts, rested.cooldown_until, rested.not_interested_at) == (0, None, None)
        assert Run.objects.filter(kind=Run.Kind.FOLLOW_UP).count() == 3


def test_a_reminder_may_ask_less_often_and_leave_alone_for_longer() -> None:
    target = sent_of(asking(follow_up_max_attempts=1, follow_up_cooldown_hours=100), at=hours(-25))
    tick()
    land()
    tick()
    target.recipient.refresh_from_db()
    assert target.recipient.attempts == 1
    assert target.recipient.cooldown_until is not None
    assert target.recipient.cooldown_until > hours(99)


def test_nobody_has_two_on_their_way() -> None:
    person = RecipientFactory.create()
    for _ in range(3):
        reminder = asking(owner=person.owner)
        sent_of(reminder, recipient=person, at=hours(-25))
    tick()
    tick()
    assert Run.objects.filter(kind=Run.Kind.FOLLOW_UP).count() == 1
    assert queued() == 2


def test_who_opts_out_between_entry_and_due_gets_nothing() -> None:
    target = sent_of(asking(), at=hours(-25))
    entry.enter()
    Recipient.objects.filter(pk=target.recipient_id).update(opted_out_at=timezone.now())
    assert sending.send_due() == 0
    assert FollowUp.objects.get().removed_reason == "opted out"


def test_one_that_failed_counts_and_ends_the_asking() -> None:
    target = sent_of(asking("medium", "medium"), at=hours(-25))
    tick()
    land("failed")
    tick()
    target.recipient.refresh_from_db()
    assert target.recipient.attempts == 1
    assert [row.removed_reason for row in FollowUp.objects.all()] == ["not delivered"]


def test_a_reply_takes_back_what_is_on_its_way() -> None:
    target = sent_of(asking(), at=hours(-25))
    tick()
    reply(target, "Here I am")
    run = Run.objects.get(kind=Run.Kind.FOLLOW_UP)
    assert [made.error for made in run.targets.all()] == ["they replied"]
    assert run.finished_at is not None
    add_up(run)
    assert FollowUp.objects.get().removed_reason == "replied"
    tick()
    target.recipient.refresh_from_db()
    assert target.recipient.attempts == 0


def test_one_that_may_have_arrived_is_not_taken_back_as_unsent() -> None:
    """Its first try got no answer, and it would have been sent again with the same key."""
    target = sent_of(asking(), at=hours(-25))
    tick()
    made = RunTarget.objects.get(run__kind=Run.Kind.FOLLOW_UP)
    AttemptFactory.create(target=made, run=made.run, account=made.account, outcome="unknown")
    RunTarget.objects.filter(pk=made.pk).update(fence=1, error="no answer within 20 s")
    reply(target, "Here I am")
    made.refresh_from_db()
    assert (made.status, made.error) == ("unconfirmed", "no answer within 20 s")
    add_up(made.run)
    tick()
    assert FollowUp.objects.get().status == Status.SENT


def test_a_reply_after_it_left_is_not_held_against_them() -> None:
    target = sent_of(asking(), at=hours(-25))
    tick()
    land(at=hours(-0.1))
    reply(target)
    tick()
    target.recipient.refresh_from_db()
    assert target.recipient.attempts == 0
    assert FollowUp.objects.get().status == Status.SENT


def test_a_reply_while_it_was_landing_is_not_held_against_them_either() -> None:
    target = sent_of(asking(), at=hours(-25))
    tick()
    made = RunTarget.objects.get(run__kind=Run.Kind.FOLLOW_UP)
    AttemptFactory.create(target=made, at=hours(-0.2))
    made.status, made.fence, made.claimed_at, made.begun_at = "sending", 1, hours(-0.2), hours(-0.2)
    made.save()
    reply(target, at=hours(-0.15))
    RunTarget.objects.filter(pk=made.pk).update(
        status="sent", claimed_at=None, begun_at=None, settled_at=hours(-0.1)
    )
    tick()
    target.recipient.refresh_from_db()
    assert target.recipient.attempts == 0
    assert FollowUp.objects.get().status == Status.SENT


def test_a_follow_up_at_night_waits_for_the_window() -> None:
    night = timezone.now().replace(hour=22, minute=0)
    with time_machine.travel(night, tick=False):
        reminder = asking()
        Reminder.objects.update(window_start_hour=9, window_end_hour=18, zone="UTC")
        sent_of(reminder, at=night - timedelta(hours=25))
        tick()
        assert Run.objects.get(kind=Run.Kind.FOLLOW_UP).status == "queued"


# Hygiene


def test_hygiene_drops_who_must_not_be_asked_and_says_why_for_each() -> None:
    now = timezone.now()
    states: dict[str, dict[str, Any]] = {
        "converted": {"converted_at": now},
        "opted out": {"opted_out_at": now},
        "blocked": {"blocked_at": now},
        "cooling down": {"attempts": 3, "cooldown_until": hours(1), "not_interested_at": now},
        "at the maximum": {"attempts": 3},
        "not interested": {"not_interested_at": now},
        "no longer reachable": {"archived_at": now},
    }
    for state in states.values():
        target = sent_of(asking(), recipient=None)
        Recipient.objects.filter(pk=target.recipient_id).update(**state)
        FollowUpFactory.create(target=target)
    off = FollowUpFactory.create(target=sent_of(asking(status="off")))
    bare = FollowUpFactory.create(target=sent_of(asking()), step=None)
    fine = FollowUpFactory.create(target=sent_of(asking()))
    removed = hygiene.clean()
    assert dict(removed) == dict.fromkeys([*states, "reminder switched off", "step removed"], 1)
    off.refresh_from_db()
    bare.refresh_from_db()
    fine.refresh_from_db()
    assert (off.removed_reason, bare.removed_reason) == ("reminder switched off", "step removed")
    assert fine.status == Status.QUEUED
    assert hygiene.clean() == {}


@pytest.mark.parametrize(
    ("mark", "reason"), [("converted_at", "converted"), ("archived_at", "no longer reachable")]
)
def test_hygiene_takes_back_what_is_on_its_way_and_has_not_left(mark: str, reason: str) -> None:
    reminder = asking()
    target = sent_of(reminder, at=hours(-25))
    other = sent_of(reminder, at=hours(-25))
    tick()
    Recipient.objects.filter(pk=target.recipient_id).update(**{mark: timezone.now()})
    assert dict(hygiene.take_back()) == {reason: 1}
    run = Run.objects.get(kind=Run.Kind.FOLLOW_UP)
    assert [made.recipient for made in run.targets.filter(status="pending")] == [other.recipient]
    assert run.targets.get(status="skipped").error == reason
    add_up(run)
    assert FollowUp.objects.get(target=target).removed_reason == reason
    assert hygiene.take_back() == {}


def test_what_has_begun_to_leave_is_not_taken_back() -> None:
    target = sent_of(asking(), at=hours(-25))
    tick()
    RunTarget.objects.filter(run__kind=Run.Kind.FOLLOW_UP).update(
        status="sending", fence=1, claimed_at=timezone.now(), begun_at=timezone.now()
    )
    Recipient.objects.filter(pk=target.recipient_id).update(converted_at=timezone.now())
    assert hygiene.take_back() == {}


contacts: st.SearchStrategy[dict[str, Any]] = st.builds(
    dict,
    attempts=st.integers(0, 3),
    cooldown_until=st.sampled_from([None, -1, 1]),
    not_interested_at=st.booleans(),
    converted_at=st.booleans(),
    opted_out_at=st.booleans(),
    blocked_at=st.booleans(),
    archived_at=st.booleans(),
)


@given(contacts)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_statement_and_the_rule_agree(contact: dict[str, Any]) -> None:
    now = timezone.now()
    follow_up = FollowUpFactory.create()
    values = {name: (now if value else None) for name, value in contact.items() if isinstance(value, bool)}
    cooldown = contact["cooldown_until"]
    values |= {
        "attempts": contact["attempts"],
        "cooldown_until": cooldown and now + timedelta(hours=cooldown),
    }
    Recipient.objects.filter(pk=follow_up.recipient_id).update(**values)
    recipient = Recipient.objects.get(pk=follow_up.recipient_id)
    hygiene.clean(now=now)
    follow_up.refresh_from_db()
    assert follow_up.removed_reason == (rules.why_not(queue.contact_of(recipient), now=now, most=3) or "")


def test_a_queue_stuck_full_of_people_at_the_maximum_flows_again(settings: Settings) -> None:
    """The story of the seeds: 500 of 500 at the maximum, and a bot that had gone mute."""
    settings.FOLLOW_UP_MAX_QUEUE_SIZE = 500
    owner = fill(500, attempts=3)
    urgent = [sent_of(asking("high", after=1, owner=owner), at=hours(-3)) for _ in range(3)]
    tick()
    assert queued() == 500
    assert not Run.objects.filter(kind=Run.Kind.FOLLOW_UP).exists()  # mute
    assert dict(hygiene.clean()) == {"at the maximum": 500}
    tick()
    leaving = Run.objects.filter(
        kind=Run.Kind.FOLLOW_UP, targets__recipient__in=[t.recipient for t in urgent]
    )
    assert leaving.count() == 3
    # Those who were stuck are left alone for two days, and then may be asked again.
    stuck = Recipient.objects.filter(attempts=3)
    assert stuck.filter(cooldown_until__gt=hours(47)).count() == 500
    assert hygiene.end_cooldowns(now=hours(49)) == 500
    assert not stuck.exists()


@given(st.lists(st.sampled_from(["high", "medium", "low"]), min_size=1, max_size=12), st.integers(0, 6))
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_queue_in_the_database_never_passes_its_maximum(urgencies: list[str], most: int) -> None:
    FollowUp.objects.all().delete()
    Run.objects.update(fired_at=hours(-999), finished_at=hours(-999))
    owner = OperatorFactory.create()
    with override_settings(FOLLOW_UP_MAX_QUEUE_SIZE=most + 1, FOLLOW_UP_BACKPRESSURE_THRESHOLD=most // 2):
        for urgency in urgencies:
            sent_of(asking(urgency, owner=owner))
            entry.enter()
        assert queued() <= most + 1
        normal = FollowUp.objects.filter(status=Status.QUEUED).exclude(urgency="high").count()
        assert normal <= most // 2 + 1


# Messages that came back (L4)


def comes_back(target: RunTarget) -> None:
    RunTarget.objects.filter(pk=target.pk).update(returned_at=timezone.now(), return_kind="temporary")


def test_a_message_that_came_back_is_not_followed_up() -> None:
    comes_back(sent_of(asking()))
    assert entry.enter() == 0
    assert not FollowUp.objects.exists()


@pytest.mark.parametrize("by", [hygiene.clean, sending.send_due])
def test_a_follow_up_that_waits_is_taken_back_when_its_message_comes_back(by: Any) -> None:
    target = sent_of(asking(after=1), at=hours(-2))
    entry.enter()
    comes_back(target)
    by()
    assert FollowUp.objects.get().removed_reason == "message returned"
    assert not Run.objects.filter(kind=Run.Kind.FOLLOW_UP).exists()


def test_the_next_step_is_not_sent_after_a_follow_up_that_came_back() -> None:
    sent_of(asking("medium", "medium", after=1), at=hours(-3))
    entry.enter()
    FollowUp.objects.update(due_at=hours(-1))
    sending.send_due()
    land(at=hours(-2))
    sending.settle()
    follow_up = FollowUp.objects.get()
    assert follow_up.status == Status.SENT
    assert follow_up.sent_as is not None
    comes_back(follow_up.sent_as)
    assert entry.enter() == 0


def test_an_undeliverable_recipient_gets_no_follow_up() -> None:
    target = sent_of(asking())
    Recipient.objects.filter(pk=target.recipient_id).update(undeliverable_at=timezone.now())
    assert entry.enter() == 0
    assert FollowUp.objects.get().removed_reason == "undeliverable"
