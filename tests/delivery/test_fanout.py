"""The making of a run."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
import time_machine
from django.db import IntegrityError, connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from redis import Redis

from accounts.models import Account, User
from delivery import fanout, lifecycle
from delivery.fanout import NothingToSendError, make_run
from delivery.models import Run, RunAccount, RunTarget
from delivery.planning.rooms import Rooms
from delivery.states import RunStatus, TargetStatus
from reminders.fire import fire, freeze
from reminders.models import Reminder
from tests.delivery.stage import add_up, counted
from tests.factories import AccountFactory, RecipientFactory, ReminderFactory, TagFactory

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis")]

BERLIN = ZoneInfo("Europe/Berlin")
WEDNESDAY_NOON = datetime(2026, 3, 11, 12, tzinfo=BERLIN)
SATURDAY_NOON = datetime(2026, 3, 14, 12, tzinfo=BERLIN)


def reminder(owner: User, **values: object) -> Reminder:
    return ReminderFactory.create(owner=owner, **{"around_the_clock": True, "recipients": 3, **values})


def accounts_of(owner: User, count: int) -> list[Account]:
    return AccountFactory.create_batch(count, owner=owner)


def test_all_targets_are_there_before_the_first_send(owner: User) -> None:
    run = fire(reminder(owner, recipients=5))
    assert run.status == RunStatus.RUNNING
    assert counted(run) == {"pending": 5}
    add_up(run)


def test_targets_are_made_by_one_statement_however_many_there_are(owner: User) -> None:
    few, many = reminder(owner, recipients=2), reminder(owner, recipients=200)
    with CaptureQueriesContext(
        connection,
    ) as for_few:
        fire(few)
    with CaptureQueriesContext(connection) as for_many:
        fire(many)
    assert len(for_few) == len(for_many)
    inserts = [q for q in for_many if "INSERT INTO delivery_runtarget" in q["sql"]]
    assert len(inserts) == 1


def test_those_named_and_those_tagged_get_it_once_each(owner: User) -> None:
    school, sports = TagFactory.create_batch(2, owner=owner)
    named, both, twice, tagged = (
        RecipientFactory.create(owner=owner, tags=tags) for tags in ([], [school], [school, sports], [sports])
    )
    RecipientFactory.create(owner=owner, tags=[TagFactory.create(owner=owner)])
    run = fire(reminder(owner, recipients=[named, both], tags=[school, sports]))
    assert set(run.targets.values_list("recipient", flat=True)) == {named.pk, both.pk, twice.pk, tagged.pk}
    assert run.total == 4


@pytest.mark.parametrize(
    ("trait", "why"),
    [("opted_out", "opted out"), ("blocked", "blocked"), ("archived", "no longer reachable")],
)
def test_whoever_must_not_get_it_is_skipped_with_the_reason(owner: User, trait: str, why: str) -> None:
    gone, fine = RecipientFactory.create(owner=owner, **{trait: True}), RecipientFactory.create(owner=owner)
    run = fire(reminder(owner, recipients=[gone, fine]))
    assert counted(run) == {"pending": 1, "skipped": 1}
    assert (run.left_out, run.expected) == (1, 1)
    target = run.targets.get(recipient=gone)
    assert (target.status, target.error) == (TargetStatus.SKIPPED, why)
    assert target.settled_at is not None
    add_up(run)


def test_a_run_in_which_everybody_is_skipped_is_over_at_once(owner: User) -> None:
    people = RecipientFactory.create_batch(2, owner=owner, opted_out=True)
    run = make_run(freeze(reminder(owner, recipients=people)))
    assert run.status == RunStatus.FAILED
    assert counted(run) == {"skipped": 2}
    assert not RunAccount.objects.filter(run=run, open=True).exists()


def test_targets_are_dealt_to_the_accounts_in_turn(owner: User) -> None:
    accounts = accounts_of(owner, 3)
    run = fire(reminder(owner, accounts=accounts, recipients=8))
    dealt = list(run.targets.order_by("recipient").values_list("account", flat=True))
    assert dealt == [accounts[number % 3].pk for number in range(8)]
    assert set(run.run_accounts.values_list("account", flat=True)) == {account.pk for account in accounts}


def test_a_recipient_that_is_tied_to_an_account_stays_with_it(owner: User) -> None:
    first, second = accounts_of(owner, 2)
    tied = RecipientFactory.create_batch(4, owner=owner, group=True, account=second)
    run = fire(reminder(owner, accounts=[first, second], recipients=tied))
    assert Counter(run.targets.values_list("account", flat=True)) == {second.pk: 4}


def test_those_who_are_tied_or_refused_take_nobodys_turn(owner: User) -> None:
    """Were they counted, every free recipient here would land on the first account."""
    first, second = accounts_of(owner, 2)
    kinds: list[dict[str, object]] = [
        {},
        {"account": second},
        {},
        {"opted_out": True},
        {},
        {"account": first},
        {},
    ]
    audience = [RecipientFactory.create(owner=owner, **values) for values in kinds]
    run = fire(reminder(owner, accounts=[first, second], recipients=audience))
    dealt = dict(run.targets.values_list("recipient", "account"))
    free = [recipient for recipient, values in zip(audience, kinds, strict=True) if not values]
    assert [dealt[recipient.pk] for recipient in free] == [first.pk, second.pk] * 2
    assert dealt[audience[1].pk] == second.pk
    assert dealt[audience[5].pk] == first.pk


def test_one_account_sends_everything(owner: User) -> None:
    (account,) = accounts_of(owner, 1)
    tied = RecipientFactory.create(owner=owner, account=account)
    run = fire(
        reminder(owner, accounts=[account], recipients=[tied, *RecipientFactory.create_batch(4, owner=owner)])
    )
    assert Counter(run.targets.values_list("account", flat=True)) == {account.pk: 5}
    assert run.run_accounts.get().account == account


def test_a_reminder_is_never_split_by_itself(owner: User) -> None:
    """Other accounts of the same owner have nothing to do with it, however free they are."""
    busy, idle = accounts_of(owner, 2)
    run = fire(reminder(owner, accounts=[busy], recipients=6))
    assert not run.targets.filter(account=idle).exists()


def test_the_accounts_are_dealt_in_the_order_of_the_reminder(owner: User) -> None:
    first, second = accounts_of(owner, 2)
    run = fire(reminder(owner, accounts=[second, first], recipients=2))
    assert list(run.targets.order_by("pk").values_list("account", flat=True)) == [second.pk, first.pk]


@pytest.mark.parametrize(
    ("missing", "sentence"),
    [("parts", "no message"), ("accounts", "no account"), ("recipients", "no recipients")],
)
def test_a_reminder_with_nothing_to_send_says_what_is_missing(
    owner: User, missing: str, sentence: str
) -> None:
    with pytest.raises(NothingToSendError, match=sentence):
        fire(reminder(owner, **{missing: 0}))
    assert not RunTarget.objects.exists()
    assert not RunAccount.objects.exists()


def test_a_run_fired_in_its_window_goes_at_once(owner: User) -> None:
    with time_machine.travel(WEDNESDAY_NOON, tick=False):
        run = fire(reminder(owner, window_start_hour=6, window_end_hour=18, zone="Europe/Berlin"))
    assert run.status == RunStatus.RUNNING
    assert run.started_at == run.fired_at
    assert run.opens_at is None
    assert run.closes_at == datetime(2026, 3, 11, 18, tzinfo=BERLIN)


def test_a_run_fired_before_its_window_waits_for_it(owner: User) -> None:
    with time_machine.travel(WEDNESDAY_NOON.replace(hour=4), tick=False):
        run = fire(reminder(owner, window_start_hour=6, window_end_hour=18, zone="Europe/Berlin"))
    assert run.status == RunStatus.QUEUED
    assert run.opens_at == datetime(2026, 3, 11, 6, tzinfo=BERLIN)
    assert run.closes_at == datetime(2026, 3, 11, 18, tzinfo=BERLIN)
    assert run.started_at is None
    assert counted(run) == {"pending": 3}


def test_a_run_fired_after_its_window_fails_with_everybody_skipped(owner: User) -> None:
    with time_machine.travel(WEDNESDAY_NOON.replace(hour=18), tick=False):
        run = fire(reminder(owner, window_start_hour=6, window_end_hour=18, zone="Europe/Berlin"))
    assert run.status == RunStatus.FAILED
    assert counted(run) == {"skipped": 3}
    assert "18:00 (Europe/Berlin)" in run.summary
    assert run.finished_at is not None
    add_up(run)


def test_the_window_is_judged_at_the_moment_of_firing_however_long_the_fan_out_takes(
    owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    fan_out = fanout._fan_out
    with time_machine.travel(WEDNESDAY_NOON.replace(hour=17, minute=59, second=58), tick=False) as clock:

        def slowly(run: Run, firing: fanout.Firing, room: Rooms) -> tuple[int, int]:
            clock.shift(5)
            return fan_out(run, firing, room)

        monkeypatch.setattr(fanout, "_fan_out", slowly)
        run = fire(reminder(owner, window_start_hour=6, window_end_hour=18, zone="Europe/Berlin"))
        assert (run.status, run.opens_at) == (RunStatus.RUNNING, None)
        run = lifecycle.close_window(run)
    assert run.status == RunStatus.FAILED
    assert counted(run) == {"skipped": 3}


def test_a_run_fired_on_a_day_off_waits_for_the_next_send_day(owner: User) -> None:
    with time_machine.travel(SATURDAY_NOON, tick=False):
        run = fire(reminder(owner, business_hours=True, around_the_clock=False, zone="Europe/Berlin"))
    assert run.status == RunStatus.QUEUED
    assert run.opens_at == datetime(2026, 3, 16, 9, tzinfo=BERLIN)


def test_around_the_clock_does_not_close_at_midnight(owner: User) -> None:
    run = fire(reminder(owner))
    assert run.closes_at is not None
    assert run.closes_at > timezone.now() + timedelta(days=7)


def test_a_due_moment_has_one_run(owner: User) -> None:
    firing = freeze(reminder(owner), due_at=datetime(2026, 3, 11, 12, tzinfo=UTC))
    assert make_run(firing).due_at == firing.due_at
    with pytest.raises(IntegrityError):
        make_run(firing)


def test_firing_wakes_the_accounts(owner: User, redis: Redis) -> None:
    accounts = accounts_of(owner, 2)
    fire(reminder(owner, accounts=accounts))
    assert Account.objects.filter(wake_at__isnull=False).count() == 2


def test_a_run_that_waits_for_its_window_wakes_nobody(owner: User) -> None:
    with time_machine.travel(WEDNESDAY_NOON.replace(hour=4), tick=False):
        fire(reminder(owner, window_start_hour=6, window_end_hour=18, zone="Europe/Berlin"))
    assert not Account.objects.filter(wake_at__isnull=False).exists()


def test_a_run_of_an_account_that_is_stopped_waits_for_it_and_says_so(owner: User) -> None:
    account = AccountFactory.create(owner=owner, flagged=True)
    run = fire(reminder(owner, accounts=[account]))
    assert (run.status, run.pause_reason) == (RunStatus.PAUSED, "account_flagged")
    assert str(account) in run.summary
    assert counted(run) == {"pending": 3}
