"""C2 to C6 over random conversations: whatever is said, decided and sent in whatever order, the rules hold."""

from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

import pytest
import time_machine
from django.db.models import Count
from django.utils import timezone
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from pytest_django import Settings

from accounts.models import Recipient
from accounts.recipients import consent
from delivery.models import Run, RunTarget
from reminders.follow_ups import hygiene
from reminders.follow_ups.tick import clean, tick
from reminders.models import FollowUp
from tests.delivery.stage import add_up
from tests.factories import (
    AccountFactory,
    FollowUpStepFactory,
    PartFactory,
    RecipientFactory,
    ReminderFactory,
)
from tests.reminders.conversations.conversation import hear, sent_of

MOST, THRESHOLD, PEOPLE = 3, 1, 5
DAY = timedelta(hours=24)
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
MOVES: dict[str, tuple[Any, Any]] = {
    "opted_out_at": (consent.opt_out, consent.opt_in),
    "blocked_at": (consent.block, consent.unblock),
    "converted_at": (consent.convert, consent.reopen),
}
somebody = st.integers(0, PEOPLE - 1)


class Talk(RuleBasedStateMachine):
    """One account, two reminders with follow-ups, one of them with a second message, and five people."""

    clock: ClassVar[Any]

    def __init__(self) -> None:
        super().__init__()
        Run.objects.all().delete()
        self.account = AccountFactory.create()
        owner = self.account.owner
        self.people = RecipientFactory.create_batch(PEOPLE, owner=owner)
        always = {"owner": owner, "window_start_hour": 0, "window_end_hour": 24}
        self.reminders = [ReminderFactory.create(**always) for _ in range(2)]
        PartFactory.create(reminder=self.reminders[0], second=True)
        for reminder in self.reminders:
            for position, urgency in enumerate(["high", "medium", "high"]):
                FollowUpStepFactory.create(
                    reminder=reminder, position=position, urgency=urgency, after_hours=5, text="Well?"
                )
        self.said: dict[int, list[datetime]] = {person.pk: [] for person in self.people}
        self.asked = dict.fromkeys(self.said, 0)  # follow-ups since they spoke, or since a cooldown ended

    # What people do and say.

    @initialize()
    def begin(self) -> None:
        self.get_a_first_message(which=0)

    @rule(which=st.integers(0, 1))
    def get_a_first_message(self, which: int) -> None:
        for person in self.people:
            sent_of(self.reminders[which], recipient=person, account=self.account, at=timezone.now())

    @rule(who=somebody, text=st.sampled_from(["Yes", "Later", "STOP"]), twice=st.booleans())
    def speak(self, who: int, text: str, twice: bool) -> None:
        person = self.people[who]
        heard = hear(self.account, text, chat=person.address)
        if twice:
            hear(self.account, text, chat=person.address, event=heard.event_id)
        self.said[person.pk].append(heard.at)
        self.asked[person.pk] = 0
        waiting = FollowUp.objects.filter(recipient=person, status__in=["queued", "sending"])
        assert not waiting.exists()

    @rule(who=somebody, mark=st.sampled_from(list(MOVES)), there=st.booleans())
    def decide(self, who: int, mark: str, there: bool) -> None:
        move = MOVES[mark][0 if there else 1]
        move(self.people[who], how="Asked.", by=None)

    # What time does.

    @rule(hours=st.sampled_from([1, 6, 25, 50]))
    def wait(self, hours: int) -> None:
        self.clock.shift(timedelta(hours=hours))

    @rule(times=st.integers(1, 5))
    def be_silent(self, times: int) -> None:
        for _ in range(times):
            self.clock.shift(timedelta(hours=7))
            self.tick()
            self.deliver(arrives=True)

    @rule()
    def tick(self) -> None:
        tick()
        self._forget_expired()

    @rule()
    def clean(self) -> None:
        clean()
        self._forget_expired()
        assert hygiene.clean() == {}
        assert hygiene.take_back() == {}

    @rule(arrives=st.booleans())
    def deliver(self, arrives: bool) -> None:
        """The engine takes up what waits, with its last look at the recipient (`begin`, `let_go`)."""
        for target in RunTarget.objects.filter(status="pending").exclude(run__kind="reminder"):
            person = Recipient.objects.get(pk=target.recipient_id)
            refused = person.opted_out_at or person.blocked_at
            self._land(target, "skipped" if refused else "sent" if arrives else "failed")
            if target.run.kind == Run.Kind.FOLLOW_UP and not refused:
                self._has_been_asked(person)
        tick()
        self._forget_expired()

    # What must hold.

    @invariant()
    def the_queue_is_never_over_full(self) -> None:
        assert FollowUp.objects.filter(status="queued").count() <= MOST

    @invariant()
    def nobody_is_asked_a_fourth_time(self) -> None:
        assert all(number <= 3 for number in self.asked.values())

    @invariant()
    def a_second_message_answers_a_reply_in_time_and_only_once(self) -> None:
        seconds = Run.objects.filter(kind=Run.Kind.SECOND).select_related("first_target")
        for run in seconds:
            first = run.first_target
            assert first is not None
            assert first.settled_at is not None
            said = self.said[first.recipient_id]
            assert any(first.settled_at <= at <= first.settled_at + DAY for at in said)
        assert all(n == 1 for _, n in seconds.values_list("first_target").annotate(n=Count("pk")))

    @invariant()
    def counts_add_up(self) -> None:
        for run in Run.objects.exclude(kind=Run.Kind.REMINDER):
            add_up(run)

    def _has_been_asked(self, person: Recipient) -> None:
        assert person.cooldown_until is None or person.cooldown_until <= timezone.now()
        if person.cooldown_until is not None:
            self.asked[person.pk] = 0
        self.asked[person.pk] += 1

    def _forget_expired(self) -> None:
        """Recipients whose cooldown has ended may be asked again."""
        for person in Recipient.objects.filter(attempts=0, pk__in=self.asked):
            self.asked[person.pk] = 0

    def _land(self, target: RunTarget, status: str) -> None:
        now, run = timezone.now(), Run.objects.get(pk=target.run_id)
        row = RunTarget.objects.filter(pk=target.pk)
        row.update(status="sending", fence=1, claimed_at=now)
        row.update(status=status, claimed_at=None, settled_at=now)
        run.pending -= 1
        setattr(run, status, getattr(run, status) + 1)
        if not run.pending:
            run.status, run.finished_at = "success" if run.sent == run.total else "failed", now
        run.save()


def talk(settings_: Settings, *, talks: int, steps: int) -> None:
    settings_.FOLLOW_UP_MAX_QUEUE_SIZE, settings_.FOLLOW_UP_BACKPRESSURE_THRESHOLD = MOST, THRESHOLD
    with time_machine.travel(NOON, tick=False) as clock:
        Talk.clock = clock
        run_state_machine_as_test(
            Talk,
            settings=settings(
                max_examples=talks,
                stateful_step_count=steps,
                deadline=None,
                suppress_health_check=list(HealthCheck),
            ),
        )


@pytest.mark.django_db
@pytest.mark.usefixtures("redis")
def test_any_conversation_keeps_the_rules(settings: Settings) -> None:
    talk(settings, talks=10, steps=25)


@pytest.mark.soak
@pytest.mark.django_db
@pytest.mark.usefixtures("redis")
def test_hundreds_of_long_conversations_keep_the_rules(settings: Settings) -> None:
    talk(settings, talks=300, steps=60)
