"""Trouble of an account or its gateway on the real engine: no recipient fails for it, and it goes on by itself."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import count

import pytest
from django.utils import timezone
from pytest_django import Settings

from accounts.models import Account
from activity.models import Attempt, Notification
from delivery import lifecycle
from delivery.engine import pump
from delivery.engine.tick import tick
from delivery.models import Run, RunTarget
from delivery.sessions import connect, probe
from delivery.states import PauseReason, RunStatus, TargetStatus
from tests.delivery.scripted_gateway import (
    BROKEN,
    BUSY,
    REFUSED,
    TOO_FAST,
    TOOK,
    WORKS,
    Said,
    ScriptedGateway,
)
from tests.delivery.stage import Stage, add_up, counted
from tests.factories import RecipientFactory

PATIENCE = 30.0  # seconds in which a test must see what it waits for; the machine may be slow


@pytest.fixture
def script() -> Iterator[ScriptedGateway]:
    with ScriptedGateway() as gateway:
        yield gateway


@pytest.fixture
def short(quick: Settings) -> Settings:
    """Waits of a twentieth of a second, up to a fifth; a minute lasts 0.3 s."""
    quick.BACKOFF_BASE_SECONDS = 0.05
    quick.NOT_CONNECTED_SECONDS = 0.05
    quick.RATE_LIMITED_SECONDS = 0.05
    quick.MINUTE_SECONDS = 0.3
    quick.TROUBLE_WAIT_MAX_MINUTES = 0.7
    quick.TROUBLE_OFFLINE_MINUTES = 1000
    return quick


def account_at(stage: Stage, gateway: ScriptedGateway, *, keys: bool = True, **values: object) -> Account:
    account = stage.account(**values)  # type: ignore[arg-type]  # whatever the stage takes
    own = {"base_url": gateway.url, "idempotent": "yes" if keys else "no"}
    account.credentials = {**account.credentials, **own}
    account.save()
    return account


def pumped(run: Run, account: Account, until: Callable[[], bool]) -> Run:
    """Pump the account, as wake-ups would, until something is so."""
    ends = time.monotonic() + PATIENCE
    while not until():
        assert time.monotonic() < ends, (counted(run), trouble_of(account))
        pump.pump(account.pk)
    run.refresh_from_db()
    return run


def ended(run: Run) -> Callable[[], bool]:
    def has() -> bool:
        run.refresh_from_db()
        return run.status != RunStatus.RUNNING

    return has


def trouble_of(account: Account) -> tuple[str, str, int]:
    account.refresh_from_db()
    return account.trouble_kind, account.trouble, account.trouble_count


def in_trouble(account: Account, *, times: int = 1) -> Callable[[], bool]:
    return lambda: trouble_of(account)[2] >= times and account.trouble_kind != ""


# The gateway is away.


def test_a_gateway_that_is_away_for_a_while_fails_nobody_and_pauses_nothing(
    stage: Stage, short: Settings, script: ScriptedGateway
) -> None:
    account = account_at(stage, script)
    run = stage.fire(account, to=12)
    script.stop()
    pumped(run, account, in_trouble(account, times=4))
    assert trouble_of(account)[:2] == ("unreachable", f"connection refused, 127.0.0.1:{script.port}")
    assert account.trouble_since is not None
    assert account.held_until is not None
    assert (run.status, counted(run)) == (RunStatus.RUNNING, {"pending": 12})
    script.start()
    pumped(run, account, ended(run))
    assert (run.status, counted(run)) == (RunStatus.SUCCESS, {"sent": 12})
    assert trouble_of(account) == ("", "", 0)
    add_up(run)


def test_what_an_account_could_not_do_counts_no_attempt(
    stage: Stage, short: Settings, script: ScriptedGateway
) -> None:
    account = account_at(stage, script)
    run = stage.fire(account, to=1)
    script.stop()
    pumped(run, account, in_trouble(account, times=8))
    script.start()
    assert run.targets.get().attempts == 0
    assert set(Attempt.objects.filter(run=run).values_list("outcome", flat=True)) == {"unreachable"}


def test_one_message_at_a_time_tries_it_out(stage: Stage, short: Settings, script: ScriptedGateway) -> None:
    account = account_at(stage, script, group_concurrency=8)
    run = stage.fire(account, to=20)
    script.answers = lambda _: BUSY
    pumped(run, account, in_trouble(account))
    script.asked.clear()
    script.most_at_once = 0
    tries = trouble_of(account)[2]
    pumped(run, account, in_trouble(account, times=tries + 3))
    assert script.most_at_once == 1
    assert len(script.asked) <= trouble_of(account)[2] - tries


def test_the_service_is_asked_how_the_account_is_before_another_message(
    stage: Stage, short: Settings, script: ScriptedGateway
) -> None:
    account = account_at(stage, script)
    run = stage.fire(account, to=5)
    script.answers, script.state = (lambda _: BUSY), Said(status=200, body={"state": "STOPPED"})
    pumped(run, account, in_trouble(account))
    asked = len(script.asked)
    pumped(run, account, in_trouble(account, times=6))
    assert len(script.asked) == asked, "it said that it is not connected"
    assert script.looked >= 3
    script.answers, script.state = (lambda _: TOOK), WORKS
    assert counted(pumped(run, account, ended(run))) == {"sent": 5}


def test_an_account_that_stays_away_is_offline_its_owner_told_once_and_comes_back_by_itself(
    stage: Stage, short: Settings, script: ScriptedGateway
) -> None:
    short.TROUBLE_OFFLINE_MINUTES = 1
    account = account_at(stage, script)
    run = stage.fire(account, to=4)
    script.stop()
    pumped(run, account, ended(run))
    account.refresh_from_db()
    assert (run.status, run.pause_reason) == (RunStatus.PAUSED, PauseReason.ACCOUNT_OFFLINE)
    assert account.status == Account.Status.OFFLINE
    assert account.status_reason == f"connection refused, 127.0.0.1:{script.port}"
    assert Notification.objects.filter(owner=stage.owner, kind="account").count() == 1

    probe_until(account, lambda: trouble_of(account)[2] > 6)
    account.refresh_from_db()
    assert (account.status, account.trouble_kind) == (Account.Status.OFFLINE, "unreachable")
    assert Notification.objects.filter(owner=stage.owner, kind="account").count() == 1

    script.start()
    probe_until(account, lambda: status_of(account) == Account.Status.ACTIVE)
    assert trouble_of(account) == ("", "", 0)
    assert account.held_until is None
    pumped(run, account, ended(run))
    assert (run.status, counted(run)) == (RunStatus.SUCCESS, {"sent": 4})


def probe_until(account: Account, so: Callable[[], bool]) -> None:
    """Ask about the account, as ticks and their tasks would."""
    ends = time.monotonic() + PATIENCE
    while not so():
        assert time.monotonic() < ends, trouble_of(account)
        probe.probe_due()
        time.sleep(0.02)


def status_of(account: Account) -> str:
    account.refresh_from_db()
    return account.status


def test_the_tick_asks_about_an_offline_account_once_and_not_again_before_its_wait(
    stage: Stage, short: Settings, script: ScriptedGateway
) -> None:
    short.TROUBLE_WAIT_MAX_MINUTES, short.BACKOFF_BASE_SECONDS = 1000, 60
    account = account_at(stage, script)
    script.stop()
    lifecycle.stop_account(account, status=Account.Status.OFFLINE, reason="its phone is away")
    assert trouble_of(account) == ("not_connected", "its phone is away", 0)
    ticked_and_probed()
    assert trouble_of(account)[2] == 1
    assert account.held_until is not None
    assert account.held_until > timezone.now() + timedelta(seconds=30)
    ticked_and_probed()
    assert trouble_of(account)[2] == 1


def ticked_and_probed() -> None:
    """Do at once what the tick sends, as a worker would."""
    tick()
    probe.probe_due()


@pytest.mark.parametrize("status", [Account.Status.PAUSED, Account.Status.FLAGGED, Account.Status.UNPAIRED])
def test_an_account_that_a_person_or_its_service_stopped_is_not_asked_about(
    stage: Stage, status: Account.Status
) -> None:
    account = stage.account()
    lifecycle.stop_account(account, status=status, reason="so")
    assert probe._take_due(timezone.now() + timedelta(days=1)) == []


def test_the_cause_that_is_told_is_the_one_of_now(
    stage: Stage, short: Settings, script: ScriptedGateway
) -> None:
    """The trouble changes from errors to silence and back, while only questions are asked and no message leaves."""
    account = account_at(stage, script)
    run = stage.fire(account, to=2)
    script.answers, script.state = (lambda _: REFUSED), BROKEN
    pumped(run, account, in_trouble(account, times=6))
    assert trouble_of(account)[:2] == ("server_errors", "the gateway answered 500: the database is away")
    script.stop()
    pumped(run, account, lambda: trouble_of(account)[0] == "unreachable")
    assert account.trouble == f"connection refused, 127.0.0.1:{script.port}"
    script.state = Said(status=502, body={"message": "a new version comes"})
    script.start()
    pumped(run, account, lambda: trouble_of(account)[0] == "server_errors")
    assert account.trouble == "the gateway answered 502: a new version comes"
    script.answers, script.state = (lambda _: TOOK), WORKS
    assert counted(pumped(run, account, ended(run))) == {"sent": 2}


def test_an_offline_account_tells_what_the_last_question_found(
    stage: Stage, short: Settings, script: ScriptedGateway
) -> None:
    account = account_at(stage, script)
    script.stop()
    lifecycle.stop_account(account, status=Account.Status.OFFLINE, reason="its phone is away")
    probe_until(account, lambda: trouble_of(account)[0] == "unreachable")
    assert account.trouble == f"connection refused, 127.0.0.1:{script.port}"
    script.state = Said(status=200, body={"state": "STOPPED"})
    script.start()
    probe_until(account, lambda: trouble_of(account)[0] == "not_connected")
    script.state = WORKS
    probe_until(account, lambda: status_of(account) == Account.Status.ACTIVE)


@pytest.mark.parametrize("count", [0, 2])
def test_an_account_goes_offline_and_comes_back_whatever_a_page_had_met(
    stage: Stage, short: Settings, script: ScriptedGateway, count: int
) -> None:
    """A look from a page notes trouble without a next try; nobody would ever ask again."""
    account = account_at(stage, script)
    met = {"trouble_kind": "" if count else "unreachable", "trouble": "connection refused, here:9"}
    Account.objects.filter(pk=account.pk).update(**met, trouble_count=count)
    account.refresh_from_db()
    lifecycle.stop_account(account, status=Account.Status.OFFLINE, reason="the session is STOPPED")
    assert trouble_of(account)[:2] == ("not_connected", "the session is STOPPED")
    probe_until(account, lambda: status_of(account) == Account.Status.ACTIVE)


def test_a_pause_by_a_person_while_the_service_is_asked_stays(
    stage: Stage, short: Settings, script: ScriptedGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = account_at(stage, script)
    lifecycle.stop_account(account, status=Account.Status.OFFLINE, reason="its phone is away")
    account.refresh_from_db()
    asked = connect.take_state

    def paused_meanwhile(account: Account, *args: object, **named: object) -> Account:
        lifecycle.pause_account(account, by=stage.owner)
        return asked(account, *args, **named)  # type: ignore[arg-type]  # whatever was given

    monkeypatch.setattr(connect, "take_state", paused_meanwhile)
    probe.probe([account])
    assert status_of(account) == Account.Status.PAUSED


# Rate limits.


def test_a_rate_limit_that_is_over_makes_no_silence_longer_than_it_is(
    stage: Stage, short: Settings, script: ScriptedGateway
) -> None:
    """An hour of rate limits is no hour without an answer: the account is not offline, and "since" is true."""
    short.TROUBLE_OFFLINE_MINUTES = 1000
    account = account_at(stage, script)
    run = stage.fire(account, to=1)
    script.answers = lambda _: TOO_FAST
    pumped(run, account, in_trouble(account))
    Account.objects.filter(pk=account.pk).update(trouble_since=timezone.now() - timedelta(days=2))
    script.stop()
    before = timezone.now()
    pumped(run, account, lambda: trouble_of(account)[0] == "unreachable")
    assert account.status == Account.Status.ACTIVE
    assert account.trouble_since is not None
    assert account.trouble_since >= before - timedelta(seconds=1)
    script.answers = lambda _: TOOK
    script.start()
    assert counted(pumped(run, account, ended(run))) == {"sent": 1}


def test_rate_limits_in_a_row_fail_nobody_and_take_no_account_offline(
    stage: Stage, short: Settings, script: ScriptedGateway
) -> None:
    short.TROUBLE_OFFLINE_MINUTES = 1
    account = account_at(stage, script)
    run = stage.fire(account, to=1)
    script.answers = lambda _: TOO_FAST
    pumped(run, account, in_trouble(account, times=6))
    assert trouble_of(account)[0] == "rate_limited"
    assert (account.status, account.slow_factor > 1) == (Account.Status.ACTIVE, True)
    assert run.targets.get().attempts == 0
    assert script.looked == 0, "it says by itself how long it lasts"
    pumped(run, account, lambda: Notification.objects.filter(kind="account").exists())
    assert Notification.objects.filter(kind="account").count() == 1, "that it lasts is told, once"
    script.answers = lambda _: TOOK
    assert counted(pumped(run, account, ended(run))) == {"sent": 1}


def test_a_pace_that_the_service_does_not_allow_is_learnt(
    stage: Stage, short: Settings, script: ScriptedGateway
) -> None:
    """A service that takes a message every 0.4 s is asked for more only now and then."""
    every, last = 0.4, [0.0]

    def limited(_: str) -> Said:
        now = time.monotonic()
        if now - last[0] < every:
            return Said(status=429, body={}, retry_after=round(every - (now - last[0]), 3))
        last[0] = now
        return TOOK

    script.answers = limited
    short.MINUTE_SECONDS = 60
    account = account_at(stage, script, limits={"gap_min": 0.02, "gap_max": 0.02})
    run = stage.fire(account, to=16)
    pumped(run, account, ended(run))
    assert counted(run) == {"sent": 16}
    refused = len(script.asked) - len(script.took)
    assert refused <= 5, "at a fixed factor every second message would be refused"


# Server errors.


def test_a_gateway_whose_database_is_down_asks_a_handful_of_questions_and_goes_on(
    stage: Stage, short: Settings, script: ScriptedGateway
) -> None:
    account = account_at(stage, script, keys=False, group_concurrency=1)
    run = stage.fire(account, to=40)
    script.answers, script.state = (lambda _: BROKEN), BROKEN
    pumped(run, account, in_trouble(account, times=9))
    assert trouble_of(account)[1] == "the gateway answered 500: the database is away"
    assert counted(run) == {"unconfirmed": 5, "pending": 35}
    assert run.status == RunStatus.RUNNING
    script.answers, script.state = (lambda _: TOOK), WORKS
    pumped(run, account, ended(run))
    assert counted(run) == {"sent": 35, "unconfirmed": 5}
    assert run.status == RunStatus.PARTIAL, "what is over does not stop it"
    add_up(run)


def test_where_the_service_says_that_it_works_one_message_at_a_time_finds_out(
    stage: Stage, short: Settings, script: ScriptedGateway
) -> None:
    short.MINUTE_SECONDS = 4  # the first wait is two seconds
    account = account_at(stage, script, keys=False, group_concurrency=1)
    run = stage.fire(account, to=60)
    script.answers = lambda _: BROKEN
    pumped(run, account, in_trouble(account, times=6))
    assert trouble_of(account)[0] == "in_doubt"
    assert 5 < counted(run)["unconfirmed"] <= 8
    assert run.status == RunStatus.RUNNING


def test_doubts_stop_a_run_when_they_go_on(stage: Stage, short: Settings, script: ScriptedGateway) -> None:
    short.TROUBLE_STREAK = 50
    account = account_at(stage, script, keys=False, group_concurrency=1)
    run = stage.fire(account, to=30)
    script.answers = lambda _: BROKEN
    pumped(run, account, ended(run))
    assert (run.status, run.pause_reason) == (RunStatus.PAUSED, PauseReason.ERROR_RATE)
    assert counted(run) == {"unconfirmed": 10, "pending": 20}
    assert "10 are unconfirmed" in run.summary


def test_with_keys_doubts_in_a_row_leave_nothing_in_doubt(
    stage: Stage, short: Settings, script: ScriptedGateway
) -> None:
    account = account_at(stage, script)
    run = stage.fire(account, to=10)
    script.answers = lambda _: BROKEN
    pumped(run, account, in_trouble(account, times=9))
    assert set(counted(run)) == {"pending"}
    script.answers = lambda _: TOOK
    assert counted(pumped(run, account, ended(run))) == {"sent": 10}


def test_server_errors_in_a_row_fail_nobody(stage: Stage, short: Settings, script: ScriptedGateway) -> None:
    account = account_at(stage, script, keys=False)
    run = stage.fire(account, to=1)
    script.answers = lambda _: REFUSED
    pumped(run, account, in_trouble(account, times=9))
    assert trouble_of(account)[0] == "server_errors"
    assert counted(run) == {"pending": 1}
    script.answers = lambda _: TOOK
    assert counted(pumped(run, account, ended(run))) == {"sent": 1}


def test_a_message_on_which_the_service_fails_fails_alone_and_holds_up_nobody(
    stage: Stage, short: Settings, script: ScriptedGateway
) -> None:
    account = account_at(stage, script, group_concurrency=1)
    people = stage.recipients(12)
    script.answers = lambda to: REFUSED if to == people[0].address else TOOK
    run = stage.fire(account, to=people)
    pumped(run, account, lambda: counted(run).get("sent") == 11)
    more = stage.fire(account, to=6)  # others go before it, and show that the service works
    pumped(more, account, ended(more))
    assert counted(more) == {"sent": 6}
    for _ in range(6):
        another = stage.fire(account, to=1)
        pumped(another, account, ended(another))
        assert counted(another) == {"sent": 1}
    pumped(run, account, ended(run))
    assert counted(run) == {"sent": 11, "failed": 1}
    assert "gave up after 5 attempts" in run.targets.get(status=TargetStatus.FAILED).error


def test_what_is_given_up_after_a_try_in_doubt_is_left_to_a_person(
    stage: Stage, short: Settings, script: ScriptedGateway
) -> None:
    """The first try may have arrived; that the service took none of the later ones says nothing about it."""
    short.TROUBLE_STREAK = 100
    account = account_at(stage, script)
    asked = count()
    script.answers = lambda _: BROKEN if next(asked) == 0 else REFUSED
    run = stage.fire(account, to=1)
    pumped(run, account, lambda: not counted(run).get("pending") and not counted(run).get("sending"))
    assert counted(run) == {"unconfirmed": 1}
    assert "gave up after 5 attempts" in run.targets.get().error
    add_up(run)


@pytest.mark.parametrize("said", [REFUSED, BROKEN], ids=["certainly not taken", "in doubt"])
def test_a_service_that_fails_on_three_of_four_messages_fails_nobody(
    stage: Stage, short: Settings, script: ScriptedGateway, said: Said
) -> None:
    """It never fails on a handful in a row, but on some message five times."""
    account = account_at(stage, script, group_concurrency=1)
    asked = count()
    script.answers = lambda _: TOOK if next(asked) % 4 == 3 else said
    run = stage.fire(account, to=12)
    pumped(run, account, ended(run))
    assert counted(run) == {"sent": 12}
    attempts = Counter(Attempt.objects.filter(run=run).values_list("target", flat=True))
    assert max(attempts.values()) > short.MAX_ATTEMPTS, "this test says nothing else"
    add_up(run)


# Runs around it.


def test_a_run_that_waits_for_another_try_is_paused_when_its_window_closes(stage: Stage) -> None:
    account = stage.account()
    run = stage.fire(account, to=2)
    later = timezone.now() + timedelta(hours=1)
    RunTarget.objects.filter(run=run).update(attempts=1, not_before=later, error="greylisted")
    hour = timezone.now().hour
    Run.objects.filter(pk=run.pk).update(
        closes_at=timezone.now() - timedelta(seconds=1),
        window_start_hour=(hour + 2) % 24 if hour < 21 else 0,
        window_end_hour=(hour + 3) % 24 if hour < 21 else 1,
    )
    lifecycle.close_window(run)
    run.refresh_from_db()
    assert (run.status, run.pause_reason) == (RunStatus.PAUSED, PauseReason.WINDOW_CLOSED)
    assert counted(run) == {"pending": 2}


def test_a_window_that_closes_while_the_account_is_in_trouble_skips_nobody(
    stage: Stage, short: Settings, script: ScriptedGateway
) -> None:
    account = account_at(stage, script)
    run = stage.fire(account, to=3)
    script.stop()
    pumped(run, account, in_trouble(account))
    hour = timezone.now().hour
    Run.objects.filter(pk=run.pk).update(
        closes_at=timezone.now() - timedelta(seconds=1),
        window_start_hour=(hour + 2) % 24 if hour < 21 else 0,
        window_end_hour=(hour + 3) % 24 if hour < 21 else 1,
    )
    lifecycle.close_window(run)
    run.refresh_from_db()
    assert (run.status, run.pause_reason) == (RunStatus.PAUSED, PauseReason.WINDOW_CLOSED)
    assert counted(run) == {"pending": 3}
    assert f"could not send: connection refused, 127.0.0.1:{script.port}." in run.summary
    script.start()


def test_trouble_survives_its_worker(stage: Stage, short: Settings, script: ScriptedGateway) -> None:
    """Whoever serves the account next goes on counting."""
    account = account_at(stage, script, keys=False, group_concurrency=1)
    script.answers = lambda _: BROKEN
    for expected in (1, 2, 3):
        run = stage.fire(account, to=1)
        pumped(run, account, ended(run))
        assert trouble_of(account) == ("", "", expected)
    script.answers = lambda _: TOOK
    run = stage.fire(account, to=1)
    pumped(run, account, ended(run))
    assert trouble_of(account) == ("", "", 0)


def test_a_person_who_starts_the_account_again_ends_its_wait(
    stage: Stage, short: Settings, script: ScriptedGateway
) -> None:
    account = stage.account(trouble_kind="unreachable", trouble="refused", trouble_count=7)
    Account.objects.filter(pk=account.pk).update(
        status="offline", trouble_since=timezone.now(), held_until=timezone.now() + timedelta(minutes=5)
    )
    lifecycle.start_account(account, by=stage.owner)
    account.refresh_from_db()
    assert (account.trouble_kind, account.trouble_count, account.held_until) == ("", 0, None)


def test_a_message_that_we_cannot_write_says_nothing_about_the_service(
    stage: Stage, short: Settings, script: ScriptedGateway
) -> None:
    account = account_at(stage, script, group_concurrency=1)
    people = [*stage.recipients(2), RecipientFactory.create(owner=stage.owner, name="")]
    script.stop()
    run = stage.fire(account, to=people)
    pumped(run, account, in_trouble(account, times=3))
    since = account.trouble_since
    run.targets.exclude(recipient=people[2]).update(not_before=timezone.now() + timedelta(hours=1))
    script.start()
    pumped(run, account, lambda: counted(run).get("failed") == 1)
    assert trouble_of(account)[0] == "unreachable"
    assert account.trouble_since == since
