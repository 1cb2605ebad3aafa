"""Firing what is due: each moment once, late within a limit, else recorded, and never on top of the last run."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from threading import Barrier, Thread
from typing import Any

import pytest
import time_machine
from django.db import connection, transaction
from django.db.models import F
from django.test.utils import CaptureQueriesContext
from django_celery_beat.models import PeriodicTask
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis import Redis

from accounts.models import Account, Recipient, User
from activity.models import Notification
from delivery import lifecycle
from delivery.models import Run
from delivery.states import PauseReason, RunStatus, TargetStatus
from reminders import due, tasks
from reminders.models import Reminder
from reminders.scheduling import schedule, switch_off
from tests.delivery.stage import add_up, becomes, counted
from tests.factories import AccountFactory, ReminderFactory, RunFactory

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis")]

NINE = datetime(2026, 3, 11, 8, tzinfo=UTC)  # a Wednesday, 9:00 in Berlin
EVE = NINE - timedelta(hours=2)
DAY = timedelta(days=1)


def at(moment: datetime) -> Any:
    return time_machine.travel(moment, tick=False)


def daily(owner: User, cron: str = "0 9 * * *", **values: Any) -> Reminder:
    """Scheduled two hours before it is due."""
    given = {"recipients": 2, "schedule": "cron", "cron": cron, "zone": "Europe/Berlin"} | values
    with at(EVE):
        return schedule(ReminderFactory.create(owner=owner, **given))


def once(owner: User, **values: Any) -> Reminder:
    return daily(owner, cron="", schedule="once", fire_at=NINE, **values)


def tick(moment: datetime) -> None:
    with at(moment):
        due.tick()


def runs(reminder: Reminder) -> list[Run]:
    return list(reminder.runs.order_by("pk"))


def moments(reminder: Reminder) -> list[tuple[datetime | None, str]]:
    return [(run.due_at, run.status) for run in runs(reminder)]


def told(owner: User) -> list[Notification]:
    return list(Notification.objects.filter(owner=owner).order_by("pk"))


@pytest.fixture
def commits(django_capture_on_commit_callbacks: Any) -> Iterator[None]:
    with django_capture_on_commit_callbacks(execute=True):
        yield


def end(run: Run) -> None:
    becomes(run, *[TargetStatus.SENT] * run.pending)
    lifecycle.settle(run.pk)


def test_nothing_fires_before_its_moment(owner: User) -> None:
    reminder = daily(owner)
    tick(NINE - timedelta(microseconds=1))
    assert runs(reminder) == []


def test_a_moment_fires_once_and_the_next_one_is_planned(owner: User) -> None:
    reminder = daily(owner)
    for late in (0, 0, 2, 4):
        tick(NINE + timedelta(seconds=late))
    (run,) = runs(reminder)
    assert (run.due_at, run.status, run.total) == (NINE, RunStatus.RUNNING, 2)
    reminder.refresh_from_db()
    assert (reminder.status, reminder.next_fire_at) == ("scheduled", NINE + DAY)
    add_up(run)


def test_a_one_off_is_done_once_it_was_fired(owner: User) -> None:
    reminder = once(owner)
    tick(NINE)
    tick(NINE + DAY)
    assert moments(reminder) == [(NINE, "running")]
    reminder.refresh_from_db()
    assert (reminder.status, reminder.next_fire_at) == ("done", None)


def test_what_is_switched_off_does_not_fire(owner: User) -> None:
    reminder = switch_off(daily(owner))
    tick(NINE)
    assert runs(reminder) == []


def test_a_run_that_is_fired_wakes_its_accounts(owner: User) -> None:
    account = AccountFactory.create(owner=owner)
    daily(owner, accounts=[account])
    tick(NINE)
    account.refresh_from_db()
    assert account.wake_at == NINE


def test_several_that_are_due_share_all_statements_but_the_one_that_makes_targets(owner: User) -> None:
    def queries(count: int) -> int:
        accounts = AccountFactory.create_batch(2, owner=owner)
        made = [daily(owner, accounts=accounts) for _ in range(count)]
        with CaptureQueriesContext(connection) as captured:
            tick(NINE)
        assert all(len(runs(reminder)) == 1 for reminder in made)
        return len(captured)

    assert queries(12) - queries(2) == 10


def test_a_tick_with_nothing_to_do_is_one_query_however_much_there_is(owner: User) -> None:
    for _ in range(5):
        daily(owner)
    RunFactory.create_batch(5, reminder__owner=owner, queued=True)
    with CaptureQueriesContext(connection) as queries:
        tick(EVE)
    assert len(queries) == 1


def test_more_than_a_batch_fires_in_one_tick(owner: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(due, "BATCH", 3)
    accounts = [AccountFactory.create(owner=owner)]
    made = [daily(owner, accounts=accounts) for _ in range(7)]
    tick(NINE)
    assert [len(runs(reminder)) for reminder in made] == [1] * 7


# Lateness.


@pytest.mark.parametrize("late", [timedelta(seconds=1), timedelta(minutes=14, seconds=59)])
def test_a_moment_fires_late_within_the_limit(owner: User, late: timedelta) -> None:
    reminder = once(owner)
    tick(NINE + late)
    assert moments(reminder) == [(NINE, "running")]


@pytest.mark.usefixtures("commits")
def test_a_moment_that_is_too_late_is_recorded_and_the_owner_is_told(owner: User) -> None:
    reminder = once(owner, name="Fair")
    tick(NINE + timedelta(minutes=15))
    (run,) = runs(reminder)
    assert (run.due_at, run.status, run.total) == (NINE, RunStatus.SKIPPED, 0)
    assert run.summary == (
        "Missed Wed 11 Mar, 09:00 (Europe/Berlin): Paceline was not running. "
        "It is more than 15 minutes late now. Press “Send now” if it still matters."
    )
    assert run.finished_at is not None
    assert Reminder.objects.get().status == "done"


def test_the_owner_is_told_once_of_what_was_missed(
    owner: User, django_capture_on_commit_callbacks: Any
) -> None:
    once(owner, name="Fair")
    for _ in range(2):
        with django_capture_on_commit_callbacks(execute=True):
            tick(NINE + timedelta(minutes=16))
    (news,) = told(owner)
    assert (news.kind, news.title) == ("missed", "Reminder missed")
    assert news.body.startswith("Fair: Missed Wed 11 Mar, 09:00 (Europe/Berlin)")


def test_the_limit_is_a_setting(owner: User, settings: Any) -> None:
    settings.LATENESS_LIMIT_MINUTES = 60
    reminder = once(owner)
    tick(NINE + timedelta(minutes=59))
    assert moments(reminder) == [(NINE, "running")]


def test_after_a_long_outage_the_newest_moment_fires_and_one_record_counts_the_others(owner: User) -> None:
    reminder = daily(owner, cron="*/10 * * * *")
    tick(EVE + timedelta(hours=3, minutes=3))
    missed, fired = runs(reminder)
    assert (missed.status, missed.due_at) == (RunStatus.SKIPPED, NINE + timedelta(minutes=50))
    assert missed.summary == (
        "Missed 17 times from Wed 11 Mar, 07:10 (Europe/Berlin) to Wed 11 Mar, 09:50 (Europe/Berlin): "
        "Paceline was not running. The newest one, Wed 11 Mar, 10:00 (Europe/Berlin), was started late."
    )
    assert (fired.status, fired.due_at) == (RunStatus.RUNNING, NINE + timedelta(hours=1))
    reminder.refresh_from_db()
    assert reminder.next_fire_at == NINE + timedelta(hours=1, minutes=10)


def test_after_a_long_outage_moments_that_are_all_too_late_are_one_record(owner: User) -> None:
    reminder = daily(owner)
    tick(NINE + 30 * DAY + timedelta(hours=5))
    (run,) = runs(reminder)
    assert run.status == RunStatus.SKIPPED
    assert run.summary.startswith(
        "Missed 31 times from Wed 11 Mar, 09:00 (Europe/Berlin) to Fri 10 Apr, 09:00"
    )
    reminder.refresh_from_db()
    assert reminder.next_fire_at == NINE + 31 * DAY - timedelta(hours=1), "summer time has come"


# Overlap.


PAUSES: dict[str, Any] = {
    "by a person": {"reason": PauseReason.OPERATOR},
    "for errors": {"reason": PauseReason.ERROR_RATE},
    "for its window": {"reason": PauseReason.WINDOW_CLOSED},
    "with its account": {"reason": PauseReason.ACCOUNT_OFFLINE},
}


def after_a_day(owner: User, pause: str, **choices: Any) -> tuple[Run, Run]:
    """Return the run of one day, paused or still running, and that of the next."""
    reminder = daily(owner, **choices)
    tick(NINE)
    (first,) = runs(reminder)
    if pause:
        lifecycle.pause(first, **PAUSES[pause])
    tick(NINE + DAY)
    first, second = runs(reminder)
    return first, second


@pytest.mark.parametrize(
    ("pause", "choice", "status"),
    [
        # It waits for a person, perhaps for ever: the choice for that holds.
        ("by a person", "run", RunStatus.RUNNING),
        ("by a person", "queue", RunStatus.QUEUED),
        ("by a person", "skip", RunStatus.SKIPPED),
        ("for errors", "run", RunStatus.RUNNING),
        ("for its window", "run", RunStatus.RUNNING),
        # It goes on without one: two runs would send the same in a row.
        ("with its account", "run", RunStatus.SKIPPED),
        ("", "run", RunStatus.SKIPPED),
    ],
)
def test_a_moment_beside_an_unfinished_run(owner: User, pause: str, choice: str, status: RunStatus) -> None:
    first, second = after_a_day(owner, pause, on_paused=choice)
    assert (second.status, second.due_at) == (status, NINE + DAY)
    assert first.status == (RunStatus.PAUSED if pause else RunStatus.RUNNING), "the last run stays as it is"


def test_a_moment_beside_a_paused_run_is_sent_unless_something_else_is_chosen(owner: User) -> None:
    assert after_a_day(owner, "by a person")[1].status == RunStatus.RUNNING


@pytest.mark.parametrize(
    ("pause", "remedy"),
    [
        ("", "The next one comes as planned."),
        ("by a person", "Resume or cancel that run."),
        ("with its account", "check the account, or cancel the run."),
    ],
)
def test_every_moment_that_is_skipped_is_recorded_and_told(
    owner: User, pause: str, remedy: str, django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        first, second = after_a_day(owner, pause, on_paused="skip")
    assert (second.status, second.total) == (RunStatus.SKIPPED, 0)
    assert second.summary.startswith(f"Skipped: run {first.pk} of this reminder was still {first.status}.")
    assert second.summary.endswith(remedy)
    note = told(owner)[-1]
    assert (note.kind, note.title) == ("missed", "Reminder skipped")
    assert note.body == f"{second.name}: {second.summary}"
    assert note.url == f"/reminders/{second.reminder_id}/"


def test_a_run_that_waits_starts_when_the_one_before_it_is_paused_and_paused_runs_hold_nothing_up(
    owner: User,
) -> None:
    first, second = after_a_day(owner, "", on_overlap="queue")
    with at(NINE + DAY):
        lifecycle.pause(first, reason=PauseReason.OPERATOR)
    tick(NINE + DAY + timedelta(seconds=2))
    assert Run.objects.get(pk=second.pk).status == RunStatus.RUNNING


def test_a_moment_waits_for_the_run_that_is_going_and_not_for_a_paused_one_before_it(owner: User) -> None:
    _, second = after_a_day(owner, "by a person", on_overlap="queue")
    tick(NINE + 2 * DAY)
    third = runs(second.reminder)[-1]
    assert third.summary.startswith(f"Waits for run {second.pk} ")
    with at(NINE + 2 * DAY):
        end(second)
    tick(NINE + 2 * DAY + timedelta(seconds=2))
    assert Run.objects.get(pk=third.pk).status == RunStatus.RUNNING


def test_a_moment_is_queued_behind_the_last_run_and_starts_when_that_ends(owner: User) -> None:
    reminder = daily(owner, on_overlap="queue")
    tick(NINE)
    tick(NINE + DAY)
    first, second = runs(reminder)
    assert second.status == RunStatus.QUEUED
    assert second.summary.startswith(f"Waits for run {first.pk} of the same reminder to end.")
    assert counted(second) == {"pending": 2}
    tick(NINE + DAY + timedelta(seconds=2))
    assert Run.objects.get(pk=second.pk).status == RunStatus.QUEUED
    end(first)
    tick(NINE + DAY + timedelta(seconds=4))
    second.refresh_from_db()
    assert (second.status, second.summary) == (RunStatus.RUNNING, "")


def test_one_that_waited_until_after_the_window_starts_with_the_next(owner: User) -> None:
    reminder = daily(owner, on_overlap="queue")
    tick(NINE)
    tick(NINE + DAY)
    first, second = runs(reminder)
    evening = NINE + DAY + timedelta(hours=12)
    with at(evening):
        end(first)
    tick(evening)
    second.refresh_from_db()
    assert (second.status, second.opens_at) == (RunStatus.QUEUED, NINE + 2 * DAY - timedelta(hours=3))


def test_no_more_than_one_moment_waits(owner: User) -> None:
    reminder = daily(owner, on_overlap="queue")
    for days in range(4):
        tick(NINE + days * DAY)
    first, second, *others = runs(reminder)
    assert [run.status for run in others] == [RunStatus.SKIPPED] * 2
    assert others[0].summary == f"Skipped: run {second.pk} already waits for run {first.pk} to end."


def test_a_run_that_waits_can_be_canceled(owner: User) -> None:
    reminder = daily(owner, on_overlap="queue")
    tick(NINE)
    tick(NINE + DAY)
    assert lifecycle.cancel(runs(reminder)[1]).status == RunStatus.CANCELED


def test_second_messages_and_follow_ups_are_in_nobodys_way(owner: User) -> None:
    reminder = daily(owner)
    for kind in ("second", "follow_up"):
        RunFactory.create(reminder=reminder, kind=kind)
    tick(NINE)
    assert reminder.runs.filter(kind="reminder", status="running").count() == 1


# What cannot be fired.


def break_parts(reminder: Reminder) -> None:
    reminder.parts.all().delete()


def break_accounts(reminder: Reminder) -> None:
    Account.objects.filter(reminders=reminder).update(archived_at=EVE)


def break_recipients(reminder: Reminder) -> None:
    reminder.recipients.clear()


@pytest.mark.parametrize(
    ("breaks", "sentence"),
    [
        (break_parts, "has no message. Write one first."),
        (break_accounts, "has no account to send from. Choose one first, or bring its archived one back."),
        (break_recipients, "has no recipients. Choose some first."),
    ],
)
def test_a_firing_that_fails_is_recorded_told_and_holds_nobody_up(
    owner: User, breaks: Any, sentence: str, django_capture_on_commit_callbacks: Any
) -> None:
    bad, good = daily(owner, name="Bad"), daily(owner)
    breaks(bad)
    with django_capture_on_commit_callbacks(execute=True):
        tick(NINE)
    (run,) = runs(bad)
    assert (run.status, run.due_at, run.total) == (RunStatus.FAILED, NINE, 0)
    assert run.summary == f"This reminder {sentence}"
    (news,) = told(owner)
    assert (news.kind, news.body) == ("failed", f"Bad: {run.summary}")
    assert moments(good) == [(NINE, "running")]
    bad.refresh_from_db()
    assert bad.next_fire_at == NINE + DAY


def test_everybody_opted_out_meanwhile(owner: User) -> None:
    reminder = daily(owner)
    Recipient.objects.update(opted_out_at=EVE)
    tick(NINE)
    (run,) = runs(reminder)
    assert run.status == RunStatus.FAILED
    assert counted(run) == {"skipped": 2}


def test_one_of_several_accounts_is_archived_and_the_others_send(owner: User) -> None:
    gone, here = AccountFactory.create_batch(2, owner=owner)
    reminder = daily(owner, accounts=[gone, here])
    Account.objects.filter(pk=gone.pk).update(archived_at=EVE)
    tick(NINE)
    assert set(runs(reminder)[0].targets.values_list("account", flat=True)) == {here.pk}


def test_an_account_that_is_stopped_pauses_its_run_alone(owner: User) -> None:
    flagged = AccountFactory.create(owner=owner, flagged=True)
    held, goes = daily(owner, accounts=[flagged]), daily(owner)
    tick(NINE)
    assert (runs(held)[0].status, runs(held)[0].pause_reason) == ("paused", "account_flagged")
    assert runs(goes)[0].status == "running"


def test_after_the_window_the_run_fails_with_everybody_skipped(owner: User) -> None:
    reminder = once(owner)
    Reminder.objects.update(window_end_hour=9, window_start_hour=6)
    tick(NINE)
    (run,) = runs(reminder)
    assert (run.status, counted(run)) == (RunStatus.FAILED, {"skipped": 2})


@pytest.mark.parametrize("values", [{"cron": "61 * * * *"}, {"zone": "Mars/Base"}])
def test_one_whose_times_mean_nothing_is_switched_off_and_the_owner_is_told(
    owner: User, values: dict[str, str], django_capture_on_commit_callbacks: Any
) -> None:
    bad, good = daily(owner), daily(owner)
    Reminder.objects.filter(pk=bad.pk).update(**values)
    with django_capture_on_commit_callbacks(execute=True):
        tick(NINE)
    bad.refresh_from_db()
    assert (bad.status, bad.next_fire_at, runs(bad)) == ("off", None, [])
    assert [news.title for news in told(owner)] == ["Reminder switched off"]
    assert len(runs(good)) == 1


def test_one_that_breaks_the_batch_is_tried_alone_and_holds_nobody_up(owner: User) -> None:
    """A constraint of this test's own stands for what nobody thought of."""
    bad, good = daily(owner, name="Bad"), daily(owner)
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE delivery_run ADD CONSTRAINT nobody_knew CHECK (name <> 'Bad')")
    tick(NINE)
    assert moments(good) == [(NINE, "running")]
    assert moments(bad) == []
    bad.refresh_from_db()
    assert bad.next_fire_at == NINE, "it stays due, and is tried again"
    Reminder.objects.filter(pk=bad.pk).update(name="Good")
    tick(NINE + timedelta(seconds=2))
    assert moments(bad) == [(NINE, "running")]


# Exactly once.


def test_a_moment_that_comes_again_because_a_clock_was_set_back_is_not_fired_again(owner: User) -> None:
    reminder = daily(owner)
    tick(NINE)
    end(runs(reminder)[0])
    Reminder.objects.update(next_fire_at=NINE)
    tick(NINE + timedelta(seconds=1))
    assert moments(reminder) == [(NINE, "success")]
    reminder.refresh_from_db()
    assert reminder.next_fire_at == NINE + DAY


def test_a_crash_before_the_end_leaves_the_moment_due(owner: User) -> None:
    reminder = daily(owner)
    with transaction.atomic():
        tick(NINE)
        transaction.set_rollback(True)
    assert runs(reminder) == []
    tick(NINE + timedelta(seconds=5))
    assert moments(reminder) == [(NINE, "running")]


def test_an_edit_at_the_moment_itself_neither_loses_nor_doubles_it(owner: User) -> None:
    reminder = daily(owner)
    with at(NINE + timedelta(seconds=1)):
        schedule(reminder)
        due.tick()
        schedule(reminder)
        due.tick()
    assert moments(reminder) == [(NINE, "running")]
    reminder.refresh_from_db()
    assert reminder.next_fire_at == NINE + DAY


steps = st.lists(
    st.one_of(
        st.tuples(st.just("wait"), st.integers(1, 30)),  # minutes until the next tick
        st.tuples(st.just("outage"), st.integers(31, 600)),
        st.tuples(st.just("set back"), st.integers(1, 90)),
        st.tuples(st.just("edit"), st.just(0)),  # of something else than its times
        st.tuples(st.just("tick"), st.just(0)),
    ),
    min_size=4,
    max_size=14,
)


def play(reminder: Reminder, steps: list[tuple[str, int]]) -> tuple[datetime, datetime]:
    """Play the steps of a reminder whose runs end at once; return from when to when the clock went."""
    now = first = EVE
    for step, minutes in steps:
        now += timedelta(minutes=-minutes if step == "set back" else minutes)
        with at(now):
            if step == "edit":
                schedule(reminder)
            else:
                due.tick()
            for run in Run.objects.filter(reminder=reminder, status=RunStatus.RUNNING):
                end(run)
    return first, now


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=steps)
def test_whatever_happens_to_the_clock_and_to_the_reminder_no_moment_fires_twice(
    owner: User, steps: list[tuple[str, int]]
) -> None:
    reminder = daily(owner, cron="*/10 * * * *", recipients=1, around_the_clock=True)
    play(reminder, steps)
    fired = [run.due_at for run in runs(reminder) if run.status != RunStatus.SKIPPED]
    assert len(fired) == len(set(fired))
    assert all(moment is not None and moment.minute % 10 == 0 for moment in fired)
    reminder.refresh_from_db()
    assert (reminder.status, reminder.next_fire_at is not None) == ("scheduled", True)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=steps.map(lambda steps: [step for step in steps if step[0] != "set back"]))
def test_while_the_clock_goes_forward_each_moment_fires_or_is_counted_as_missed(
    owner: User, steps: list[tuple[str, int]]
) -> None:
    reminder = daily(owner, cron="*/10 * * * *", recipients=1, around_the_clock=True)
    first, now = play(reminder, [*steps, ("tick", 0)])
    found = runs(reminder)
    missed = [re.match(r"Missed (?:(\d+) times)?", run.summary) for run in found if run.status == "skipped"]
    counted = sum(int(words[1] or 1) for words in missed if words)
    fired = sum(run.status == RunStatus.SUCCESS for run in found)
    due_by_now = int((now - first).total_seconds() // 600)
    assert (fired + counted, len(missed)) == (due_by_now, len(found) - fired)


@pytest.mark.django_db(transaction=True)
def test_ticks_at_the_same_time_share_the_work_and_never_take_the_same(
    owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(due, "BATCH", 4)
    accounts = [AccountFactory.create(owner=owner)]
    made = [daily(owner, accounts=accounts) for _ in range(24)]
    together = Barrier(4)
    failures: list[BaseException] = []

    def worker() -> None:
        try:
            together.wait()
            due.tick()
        except BaseException as error:  # noqa: BLE001 - told to the test
            failures.append(error)
        finally:
            connection.close()

    with at(NINE):
        threads = [Thread(target=worker) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert failures == []
    assert [moments(reminder) for reminder in made] == [[(NINE, "running")]] * 24
    assert Run.objects.filter(total=F("pending")).count() == 24


# By beat.


def test_the_task_fires_what_is_due(owner: User, traveling: None) -> None:
    reminder = daily(owner)
    with at(NINE):
        tasks.fire_due()
    assert len(runs(reminder)) == 1


def test_beat_knows_the_job(settings: Any) -> None:
    job = PeriodicTask.objects.get(task="reminders.fire_due")
    assert job.interval is not None
    assert job.interval.every == settings.TICK_SECONDS
    assert job.expire_seconds == 10


def test_redis_being_away_costs_no_firing(owner: User, redis: Redis) -> None:
    reminder = daily(owner)
    tick(NINE)
    redis.flushdb()
    assert Account.objects.filter(wake_at=NINE).exists(), "the database knows who has work"
    assert len(runs(reminder)) == 1
