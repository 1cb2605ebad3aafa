"""The run that an account serves next, and when it waits: on time first where its profile says so (SPEC P9)."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from pytest_django import Settings

from accounts.models import Account, User
from delivery.engine import claims
from delivery.engine.next_run import Turn, next_turn
from delivery.engine.wakeups import Rest
from delivery.models import Run, RunTarget
from delivery.states import WaitReason
from reminders.fire import fire
from tests.delivery.stage import Stage, serve
from tests.factories import AccountFactory, AttemptFactory, LimitFactory, ReminderFactory

NOW = datetime(2026, 3, 11, 12, tzinfo=UTC)
SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)


@pytest.fixture
def account(owner: User, redis: object) -> Account:
    return AccountFactory.create(owner=owner, profile="slow_sender")


def planned(account: Account, *ago: timedelta) -> Run:
    """A run whose targets were planned so long ago; less than nothing is still to come."""
    reminder = ReminderFactory.create(
        owner=account.owner, accounts=[account], recipients=len(ago), around_the_clock=True
    )
    run = fire(reminder)
    Run.objects.filter(pk=run.pk).update(closes_at=NOW + timedelta(days=7))
    for target, each in zip(run.targets.order_by("pk"), ago, strict=True):
        RunTarget.objects.filter(pk=target.pk).update(not_before=NOW - each)
    return run


def ask(account: Account, *, busy: bool = False) -> Turn | Rest:
    return next_turn(account, now=NOW, busy=busy)


def claimed(account: Account, turn: Turn | Rest, *, most: int = 9) -> list[int]:
    """The targets that the turn would take, by their place in the run."""
    assert isinstance(turn, Turn)
    taken = claims.claim(
        turn.run.run_id,
        account.pk,
        fence=account.fence,
        most=min(most, turn.most or most),
        now=NOW,
        planned=turn.planned,
    )
    places = list(RunTarget.objects.filter(run=turn.run.run_id).order_by("pk").values_list("pk", flat=True))
    return [places.index(target.target_id) for target in taken]


def sent(account: Account, *ago: timedelta) -> None:
    for each in ago:
        AttemptFactory.create(test_send=True, account=account, at=NOW - each)


@pytest.mark.django_db
def test_what_is_on_time_goes_before_what_is_overdue(account: Account) -> None:
    planned(account, HOUR, MINUTE, 3 * HOUR, 2 * MINUTE)
    assert claimed(account, ask(account)) == [3, 1]


@pytest.mark.django_db
def test_a_run_that_is_on_time_goes_before_one_that_is_overdue_whatever_was_fired_first(
    account: Account,
) -> None:
    planned(account, HOUR)
    fresh = planned(account, SECOND)
    turn = ask(account)
    assert isinstance(turn, Turn)
    assert turn.run.run_id == fresh.pk


@pytest.mark.django_db
def test_of_what_is_overdue_one_goes_the_oldest_first(account: Account) -> None:
    planned(account, HOUR, 3 * HOUR, 2 * HOUR)
    assert claimed(account, ask(account)) == [1]


@pytest.mark.django_db
def test_after_any_message_what_is_overdue_waits_three_to_five_minutes(account: Account) -> None:
    planned(account, HOUR)
    sent(account, MINUTE)
    rest = ask(account)
    assert isinstance(rest, Rest)
    assert rest.until is not None
    assert 2 * MINUTE <= rest.until - NOW <= 4 * MINUTE
    assert rest.reason == WaitReason.GAP
    again = ask(account)
    assert isinstance(again, Rest)
    assert again.until == rest.until, "asked again, it is the same moment"


@pytest.mark.django_db
def test_after_five_minutes_it_goes(account: Account) -> None:
    planned(account, HOUR)
    sent(account, 5 * MINUTE)
    assert claimed(account, ask(account)) == [0]


@pytest.mark.django_db
def test_it_waits_for_one_that_is_planned_before_the_gap_would_be_over(account: Account) -> None:
    planned(account, HOUR, -3 * MINUTE)
    rest = ask(account)
    assert isinstance(rest, Rest)
    assert (rest.until, rest.reason) == (NOW + 3 * MINUTE, WaitReason.NOT_BEFORE)


@pytest.mark.django_db
def test_it_leaves_room_in_the_caps_for_what_is_planned(account: Account) -> None:
    planned(account, HOUR, -20 * MINUTE, -40 * MINUTE)
    sent(account, *(10 * MINUTE + number * MINUTE for number in range(7)))
    assert claimed(account, ask(account)) == [0], "7 sent and 2 planned of 10 an hour"
    sent(account, 30 * MINUTE)
    rest = ask(account)
    assert isinstance(rest, Rest)
    assert rest.until == NOW + 20 * MINUTE


@pytest.mark.django_db
def test_every_part_takes_its_room_of_what_is_planned_and_of_what_is_overdue(account: Account) -> None:
    run = planned(account, HOUR, -20 * MINUTE, -40 * MINUTE)
    sent(account, 10 * MINUTE)
    Run.objects.filter(pk=run.pk).update(parts=[{"kind": "text", "text": "Hi"}] * 3)
    assert claimed(account, ask(account)) == [0], "1 sent, 6 planned and 3 overdue of 10 an hour"
    sent(account, 11 * MINUTE)
    RunTarget.objects.filter(run=run).update(status="pending", claimed_at=None)
    assert isinstance(ask(account), Rest)
    RunTarget.objects.filter(run=run, not_before__gt=NOW).update(parts_done=1)
    assert claimed(account, ask(account)) == [0], "what has left of a target is planned no more"


@pytest.mark.django_db
def test_what_other_actions_and_runs_that_wait_for_a_person_have_planned_takes_no_room(
    account: Account,
) -> None:
    LimitFactory.create(account=account, per_minute=None, per_hour=2)
    planned(account, HOUR, -50 * MINUTE)
    other, paused = planned(account, -30 * MINUTE), planned(account, -40 * MINUTE)
    Run.objects.filter(pk=other.pk).update(action="email")
    Run.objects.filter(pk=paused.pk).update(status="paused", pause_reason="operator")
    assert claimed(account, ask(account)) == [0], "1 planned and 1 overdue of 2 an hour"


@pytest.mark.django_db
def test_a_slowed_account_leaves_a_longer_gap_before_what_is_planned(account: Account) -> None:
    planned(account, HOUR, -6 * MINUTE)
    account.slow_factor = 1.5
    rest = ask(account)
    assert isinstance(rest, Rest)
    assert rest.until == NOW + 6 * MINUTE


@pytest.mark.django_db
def test_it_waits_until_what_left_is_in_the_ledger(account: Account) -> None:
    planned(account, HOUR)
    rest = ask(account, busy=True)
    assert isinstance(rest, Rest)
    assert rest.reason == WaitReason.GAP


@pytest.mark.django_db
def test_with_nothing_due_it_rests_until_the_next_is_planned(account: Account) -> None:
    nothing = ask(account)
    assert isinstance(nothing, Rest)
    assert (nothing.until, nothing.reason) == (None, WaitReason.NOTHING_TO_SEND)
    planned(account, -HOUR)
    rest = ask(account)
    assert isinstance(rest, Rest)
    assert (rest.until, rest.reason) == (NOW + HOUR, WaitReason.NOT_BEFORE)


@pytest.mark.django_db
def test_other_profiles_take_all_that_is_due_in_its_order(owner: User, redis: object) -> None:
    account = AccountFactory.create(owner=owner)
    planned(account, HOUR, MINUTE, 3 * HOUR)
    sent(account, MINUTE)
    assert claimed(account, ask(account)) == [2, 0, 1]


@pytest.mark.django_db
def test_own_limits_of_an_account_hold_besides(account: Account) -> None:
    LimitFactory.create(account=account, per_minute=None, per_hour=2)
    planned(account, HOUR, -50 * MINUTE)
    sent(account, 20 * MINUTE)
    assert isinstance(ask(account), Rest), "1 sent and 1 planned of 2 an hour"


def test_after_an_outage_the_receiver_sees_no_bunch(stage: Stage, quick: Settings) -> None:
    """The engine itself, with seconds for minutes: four that were held up, and what the sandbox saw of them."""
    quick.ON_TIME_SECONDS, quick.OVERDUE_GAP_MIN_SECONDS, quick.OVERDUE_GAP_MAX_SECONDS = 0.3, 0.3, 0.5
    limits = {"per_hour": 1000, "per_day": 1000, "gap_min": 0.01, "gap_max": 0.02}
    account = stage.account(profile="slow_sender", limits=limits)
    run = stage.fire(account, to=4)
    RunTarget.objects.filter(run=run).update(not_before=datetime.now(UTC) - HOUR)
    serve(run, account)
    arrived = [line["at"] for line in stage.delivered(account)]
    assert len(arrived) == 4
    assert min(after - before for before, after in pairwise(arrived)) >= 300
