"""The forecast of a reminder before it is scheduled."""

from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from redis import Redis

from accounts.models import Account, User
from delivery.models import Run
from delivery.planning import diary, forecasts, upcoming, workload
from delivery.planning.values import PauseCause
from delivery.planning.words import Forecast
from delivery.states import PauseReason, RunStatus
from reminders import forecast
from reminders.models import Reminder
from reminders.readiness import Problem, Step, problems
from tests.factories import (
    AccountFactory,
    AttemptFactory,
    LimitFactory,
    RecipientFactory,
    ReminderFactory,
    RunAccountFactory,
    RunFactory,
    RunTargetFactory,
)

pytestmark = pytest.mark.django_db

BERLIN = ZoneInfo("Europe/Berlin")
WEDNESDAY = datetime(2026, 3, 11, 10, tzinfo=BERLIN)
LATER = WEDNESDAY + timedelta(hours=5)


@pytest.fixture
def account(owner: User) -> Account:
    return AccountFactory.create(owner=owner, zone="Europe/Berlin")


def reminder(account: Account, **values: Any) -> Reminder:
    given = {
        "owner": account.owner,
        "zone": "Europe/Berlin",
        "accounts": [account],
        "recipients": 10,
        **values,
    }
    return ReminderFactory.create(**given)


def foreseen(account: Account, now: datetime = WEDNESDAY, **values: Any) -> Forecast:
    return forecast.forecast(reminder(account, **values), now=now)


def under_way(account: Account, *, pending: int, **values: Any) -> Run:
    """A run of the account of which so much is left."""
    run = RunFactory.create(
        reminder=ReminderFactory.create(owner=account.owner, accounts=0),
        pending=pending,
        zone="Europe/Berlin",
        **{"fired_at": WEDNESDAY - timedelta(hours=1), **values},
    )
    RunAccountFactory.create(run=run, account=account)
    return run


def test_what_fits_is_green(account: Account) -> None:
    found = foreseen(account, recipients=80)
    assert (found.fits, found.label, found.suggestion) == (True, "Fits in window", "")
    assert (found.targets, found.parts, found.minutes) == (80, 1, 3)
    assert found.sentence == "About 2 minutes, 3 minutes with a margin, finished about 10:02 (Europe/Berlin)."


@pytest.mark.parametrize(("minute", "fits"), [(57, True), (58, False)])
def test_what_fits_only_without_the_margin_is_amber(account: Account, minute: int, fits: bool) -> None:
    found = foreseen(account, now=WEDNESDAY.replace(hour=17, minute=minute), recipients=70)
    assert found.fits is fits
    if not fits:
        assert found.sentence == (
            "About 2 minutes, 3 minutes with a margin, and the window closes at 18:00 (Europe/Berlin): "
            "the run may not finish."
        )
        assert found.suggestion == "Let the window end at 19:00, or send it earlier."


def test_every_part_costs_its_time(account: Account) -> None:
    once, thrice = foreseen(account, recipients=40), foreseen(account, recipients=40, parts=3)
    assert (once.minutes, thrice.minutes) == (2, 4)
    assert thrice.finishes_at is not None
    assert once.finishes_at is not None
    assert thrice.finishes_at - WEDNESDAY > 2.5 * (once.finishes_at - WEDNESDAY)


def test_what_the_window_cuts_short_is_amber_and_says_what_helps(account: Account) -> None:
    late = WEDNESDAY.replace(hour=17, minute=58)
    found = foreseen(account, now=late, recipients=200)
    assert (found.fits, found.label) == (False, "Likely to pause")
    assert found.sentence.startswith(
        "The window closes at 18:00 with 80 of 200 delivered. If you resume it then, it ends about"
    )
    assert "Thu 12 Mar, 06:04 (Europe/Berlin)" in found.sentence
    assert found.suggestion == "Let the window end at 19:00, or split the run into smaller ones."


def test_a_reminder_that_resumes_by_itself_says_so(account: Account) -> None:
    late = WEDNESDAY.replace(hour=17, minute=59)
    found = foreseen(account, now=late, recipients=200, on_close=Reminder.OnClose.RESUME)
    assert "It continues when the window opens again and ends about" in found.sentence


def test_where_no_hour_is_late_enough_another_account_is_suggested(account: Account) -> None:
    LimitFactory.create(account=account, per_minute=1, per_hour=2)
    found = foreseen(account, recipients=40)
    assert found.suggestion == "Add another account, or split the run into smaller ones."


def test_a_daily_cap_is_amber_with_its_own_remedy(account: Account) -> None:
    LimitFactory.create(account=account, per_day=4)
    found = foreseen(account)
    assert found.sentence.startswith("The daily limit is reached at 10:00 with 4 of 10 delivered.")
    assert found.suggestion == "Raise the account's daily limit, or add another account."
    assert [pause.cause for pause in found.timeline.pauses] == [PauseCause.DAILY_CAP] * 2


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({}, "If you resume it each day, it ends about Fri 13 Mar"),
        ({"on_close": "resume"}, "The rest follows on later days and ends about Fri 13 Mar"),
        ({"around_the_clock": True}, "The rest follows on later days and ends about Fri 13 Mar"),
    ],
)
def test_whether_a_full_day_needs_a_person_is_said(
    account: Account, values: dict[str, Any], words: str
) -> None:
    LimitFactory.create(account=account, per_day=4)
    assert words in foreseen(account, **values).sentence


def test_what_the_ledger_holds_today_counts_against_the_cap(account: Account) -> None:
    LimitFactory.create(account=account, per_day=4)
    for at in (WEDNESDAY - timedelta(hours=11), WEDNESDAY - timedelta(hours=1)):  # yesterday, today
        AttemptFactory.create(test_send=True, account=account, at=at)
    assert foreseen(account).timeline.pauses[0].done == 3


def test_a_warm_up_is_expected_to_go_well(owner: User) -> None:
    account = AccountFactory.create(
        owner=owner, zone="Europe/Berlin", warmup_start=2, warmup_step=3, warmup_ceiling=20
    )
    assert [pause.done for pause in foreseen(account, recipients=16).timeline.pauses] == [2, 7, 15]


def test_a_drip_takes_its_days_and_does_not_pause(account: Account) -> None:
    LimitFactory.create(account=account, per_day=5)
    found = foreseen(account, drip=True)
    assert found.fits
    assert found.sentence.startswith("Planned over 2 days, finished about Thu 12 Mar")


def test_a_reminder_fired_after_its_window_would_send_nothing(account: Account) -> None:
    found = foreseen(account, now=WEDNESDAY.replace(hour=19))
    assert not found.fits
    assert "Nothing would be sent" in found.sentence
    assert found.suggestion == "Send it before 18:00, or widen the window."


def test_it_is_foreseen_from_the_moment_that_it_is_due(account: Account) -> None:
    due = WEDNESDAY + timedelta(days=2)
    found = foreseen(account, fire_at=due)
    assert (found.fires_at, found.timeline.starts_at) == (due, due)
    assert "Fri 13 Mar, 10:01" in found.sentence


def test_a_draft_that_repeats_is_foreseen_from_its_next_moment(account: Account) -> None:
    found = foreseen(account, repeating=True, cron="30 11 * * *")
    assert found.fires_at == WEDNESDAY.replace(hour=11, minute=30)


def test_a_time_that_nobody_can_read_is_no_reason_not_to_forecast(account: Account) -> None:
    assert foreseen(account, repeating=True, cron="every day").fires_at == WEDNESDAY


def test_another_moment_can_be_asked_about(account: Account) -> None:
    when = WEDNESDAY + timedelta(hours=3)
    assert forecast.forecast(reminder(account), now=WEDNESDAY, fires_at=when).timeline.starts_at == when


def test_runs_that_are_ahead_are_waited_for(account: Account) -> None:
    under_way(account, pending=400)
    found = foreseen(account)
    assert found.timeline.starts_at is not None
    assert found.timeline.starts_at - WEDNESDAY == pytest.approx(timedelta(minutes=10), rel=0.05)


@pytest.mark.parametrize(
    "other",
    [
        {"priority": -1},
        {"status": RunStatus.PAUSED, "pause_reason": PauseReason.OPERATOR},
    ],
)
def test_runs_behind_it_or_paused_for_a_person_are_not(account: Account, other: dict[str, Any]) -> None:
    under_way(account, pending=400, **other)
    assert foreseen(account).timeline.starts_at == WEDNESDAY


def test_what_drips_have_planned_is_kept_free(account: Account) -> None:
    LimitFactory.create(account=account, per_day=6)
    run = under_way(account, pending=4)
    RunTargetFactory.create_batch(4, run=run, account=account, not_before=WEDNESDAY + timedelta(hours=3))
    found = foreseen(account, fire_at=LATER)
    assert found.timeline.starts_at == LATER
    assert [pause.done for pause in found.timeline.pauses] == [2, 8]


def test_who_may_leave_now_does_not_wait_for_what_is_planned_for_later(account: Account) -> None:
    """The limiter keeps no place free: the planned ones move to the next day, and go first there."""
    LimitFactory.create(account=account, per_day=6)
    run = under_way(account, pending=4)
    RunTargetFactory.create_batch(4, run=run, account=account, not_before=WEDNESDAY + timedelta(hours=3))
    assert [pause.done for pause in foreseen(account).timeline.pauses] == [6, 8]


def test_a_slow_service_is_learned_from_the_ledger(account: Account) -> None:
    for number in range(40):
        at = WEDNESDAY - timedelta(hours=2) + timedelta(seconds=4 * number)
        AttemptFactory.create(test_send=True, account=account, at=at, took_ms=11_000)
    found = foreseen(account, recipients=31)
    assert found.finishes_at == WEDNESDAY + timedelta(seconds=120)


def test_an_account_that_was_told_to_slow_down_recovers_step_by_step(account: Account) -> None:
    usual = foreseen(account, recipients=60)
    account.slow_factor = 2.25
    account.save()
    slowed = foreseen(account, recipients=60)
    assert usual.finishes_at is not None
    assert slowed.finishes_at is not None
    # 20 messages at 2.25 and 20 at 1.5 times the gap of 1.5 s.
    later = timedelta(seconds=1.5 * (20 * 1.25 + 20 * 0.5))
    assert slowed.finishes_at - usual.finishes_at == pytest.approx(later, rel=0.05)


def failing(account: Account, failed: int, of: int = 40) -> None:
    at = WEDNESDAY - timedelta(hours=2)
    AttemptFactory.create_batch(of - failed, test_send=True, account=account, at=at)
    AttemptFactory.create_batch(failed, test_send=True, account=account, at=at, outcome="rejected")


def test_errors_that_slow_a_run_down_are_expected_again(account: Account) -> None:
    usual = foreseen(account, recipients=60)
    failing(account, 4)
    slower = foreseen(account, recipients=60)
    assert slower.fits
    assert usual.finishes_at is not None
    assert slower.finishes_at is not None
    assert (slower.finishes_at - WEDNESDAY) / (usual.finishes_at - WEDNESDAY) == pytest.approx(1.5, rel=0.01)


@pytest.mark.parametrize(("failed", "of"), [(2, 40), (10, 19)])
def test_few_errors_and_few_messages_say_nothing(account: Account, failed: int, of: int) -> None:
    usual = foreseen(account, recipients=60).finishes_at
    failing(account, failed, of)
    assert foreseen(account, recipients=60).finishes_at == usual


def test_errors_that_would_stop_a_run_are_amber(account: Account) -> None:
    failing(account, 10)
    found = foreseen(account)
    assert (found.fits, found.label) == (False, "Likely to pause")
    assert found.sentence == "25% of the account's latest messages failed. A run with so many errors pauses."
    assert "Look at the errors" in found.suggestion


def test_a_run_of_its_own_error_rate_is_foreseen_by_that(account: Account) -> None:
    clean, failed = under_way(account, pending=100, sent=100), None
    alone = forecasts.forecast(clean, now=WEDNESDAY).finishes_at
    Run.objects.filter(pk=clean.pk).update(sent=90, failed=10)
    failed = forecasts.forecast(Run.objects.get(pk=clean.pk), now=WEDNESDAY).finishes_at
    assert alone is not None
    assert failed is not None
    assert (failed - WEDNESDAY) / (alone - WEDNESDAY) == pytest.approx(1.5, rel=0.01)


def test_recipients_that_are_tied_to_an_account_are_its_own_to_send(owner: User, account: Account) -> None:
    other = AccountFactory.create(owner=owner, zone="Europe/Berlin")
    run = under_way(account, pending=50)
    RunAccountFactory.create(run=run, account=other)
    RunTargetFactory.create_batch(40, run=run, account=account, not_before=WEDNESDAY)
    RunTargetFactory.create_batch(10, run=run, account=other, not_before=WEDNESDAY)
    starts = [foreseen(each, recipients=1).timeline.starts_at for each in (account, other)]
    waits = [(at - WEDNESDAY) / timedelta(seconds=1.5) for at in starts if at is not None]
    assert waits == [pytest.approx(40, rel=0.05), pytest.approx(10, rel=0.1)]


# Reminders that are scheduled, and not fired yet.


def scheduled(account: Account, at: datetime, recipients: int = 40, **values: Any) -> Reminder:
    made = reminder(account, recipients=recipients, fire_at=at, **values)
    Reminder.objects.filter(pk=made.pk).update(status="scheduled", next_fire_at=at)
    return made


@pytest.fixture
def four_a_minute(account: Account) -> None:
    LimitFactory.create(account=account, per_minute=4)


@pytest.mark.usefixtures("four_a_minute")
def test_what_fires_before_its_end_is_waited_for(account: Account) -> None:
    scheduled(account, WEDNESDAY + timedelta(minutes=1), priority=1)
    found = foreseen(account, recipients=8)
    assert found.finishes_at is not None
    assert found.finishes_at - WEDNESDAY == pytest.approx(timedelta(minutes=12), rel=0.1)
    assert [pause.cause for pause in found.timeline.pauses] == [PauseCause.OTHER_RUNS]


@pytest.mark.parametrize(
    ("after", "values"),
    [
        (timedelta(minutes=1), {}),  # it fires later, and has no priority
        (timedelta(minutes=3), {"priority": 1}),  # it fires after the end
        (timedelta(minutes=1), {"priority": 1, "recipients": 0}),
        (timedelta(minutes=1), {"priority": 1, "action": "email"}),  # which has limits of its own
    ],
)
@pytest.mark.usefixtures("four_a_minute")
def test_what_is_behind_it_does_not_matter(
    account: Account, after: timedelta, values: dict[str, Any]
) -> None:
    alone = foreseen(account, recipients=8).finishes_at
    scheduled(account, WEDNESDAY + after, **values)
    assert foreseen(account, recipients=8).finishes_at == alone


@pytest.mark.usefixtures("four_a_minute")
def test_what_fires_only_because_of_another_is_waited_for_too(account: Account) -> None:
    scheduled(account, WEDNESDAY + timedelta(minutes=1), priority=1)
    scheduled(account, WEDNESDAY + timedelta(minutes=5), priority=1)
    found = foreseen(account, recipients=8)
    assert found.finishes_at is not None
    assert found.finishes_at - WEDNESDAY == pytest.approx(timedelta(minutes=22), rel=0.1)


def test_a_reminder_that_repeats_comes_again(account: Account) -> None:
    LimitFactory.create(account=account, per_day=10)
    first = WEDNESDAY + timedelta(hours=1)
    scheduled(account, first, 6, schedule="cron", cron="0 11 * * *", priority=1)
    found = foreseen(account, recipients=30)
    # 10 today, which leave before it fires; then 4 on each day besides its own 6.
    assert [pause.done for pause in found.timeline.pauses if pause.cause is PauseCause.DAILY_CAP][:3] == [
        10,
        14,
        18,
    ]


def test_what_a_drip_will_take_of_the_days_is_kept_free(account: Account) -> None:
    LimitFactory.create(account=account, per_day=10)
    scheduled(account, WEDNESDAY + timedelta(minutes=1), 12, drip=True, business_hours=True)
    found = foreseen(account, recipients=20, fire_at=LATER)
    assert [pause.done for pause in found.timeline.pauses if pause.cause is PauseCause.DAILY_CAP] == [
        0,
        8,
        18,
    ]


@pytest.mark.parametrize("parts", [1, 3])
def test_a_drip_that_no_day_has_room_for_takes_none(
    account: Account, monkeypatch: pytest.MonkeyPatch, parts: int
) -> None:
    monkeypatch.setattr(diary, "FURTHEST", 10)
    LimitFactory.create(account=account, per_day=2)
    scheduled(account, WEDNESDAY + timedelta(minutes=1), 30, drip=True, parts=parts)
    assert foreseen(account, recipients=4).finishes_at is not None


def test_very_many_drips_are_foreseen_by_the_first(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upcoming, "MOST_DRIPS", 1)
    monkeypatch.setattr(upcoming, "MOST_PLANNED", 5)
    LimitFactory.create(account=account, per_day=10)
    for _ in range(2):
        scheduled(account, WEDNESDAY + timedelta(minutes=1), 12, drip=True, business_hours=True)
    found = foreseen(account, recipients=20, fire_at=LATER)
    assert [pause.done for pause in found.timeline.pauses if pause.cause is PauseCause.DAILY_CAP] == [5, 15]


def test_itself_drafts_and_what_cannot_be_read_are_left_out(account: Account) -> None:
    own = scheduled(account, WEDNESDAY + timedelta(minutes=1), 8)
    scheduled(account, WEDNESDAY, schedule="cron", cron="every day", priority=1)
    draft = scheduled(account, WEDNESDAY, priority=1)
    Reminder.objects.filter(pk=draft.pk).update(status="draft")
    found = forecast.forecast(own, now=WEDNESDAY)
    assert found.timeline.starts_at == WEDNESDAY + timedelta(minutes=1)


def test_several_accounts_share_it_and_those_who_must_not_get_it_do_not_count(
    owner: User, account: Account
) -> None:
    other = AccountFactory.create(owner=owner, zone="Europe/Berlin")
    people = RecipientFactory.create_batch(80, owner=owner)
    people += RecipientFactory.create_batch(5, owner=owner, opted_out=True)
    found = forecast.forecast(reminder(account, accounts=[account, other], recipients=people), now=WEDNESDAY)
    assert found.targets == 80
    assert found.finishes_at is not None
    assert found.finishes_at - WEDNESDAY == pytest.approx(timedelta(minutes=1), rel=0.1)


def test_a_reminder_without_anybody_is_finished_at_once(account: Account) -> None:
    found = foreseen(account, recipients=0)
    assert (found.fits, found.sentence, found.minutes) == (True, "There are no recipients yet.", 0)


def test_a_reminder_without_an_account_says_so(owner: User) -> None:
    found = forecast.forecast(ReminderFactory.create(owner=owner, accounts=0, recipients=2), now=WEDNESDAY)
    assert (found.fits, found.sentence) == (False, "The reminder has no account to send from.")


def test_what_takes_more_than_a_year_says_so(account: Account) -> None:
    LimitFactory.create(account=account, per_day=1)
    found = foreseen(account, recipients=400)
    assert (found.fits, found.finishes_at) == (False, None)
    assert "more than a year: 367 of 400" in found.sentence


def test_more_parts_than_a_limit_allows_are_refused_with_a_sentence(account: Account) -> None:
    LimitFactory.create(account=account, per_hour=2)
    three = reminder(account, parts=3)
    sentence = (
        f"This message has 3 parts, and {account} may send 2 per hour. Use fewer parts, or raise the limit."
    )
    assert problems(three, now=WEDNESDAY)[0] == Problem(step=Step.MESSAGE, sentence=sentence)
    found = forecast.forecast(three, now=WEDNESDAY)
    assert (found.fits, found.suggestion) == (False, "Use fewer parts, or raise the limit.")


def test_what_can_be_sent_is_not_refused(account: Account) -> None:
    due = WEDNESDAY + timedelta(hours=1)
    assert not problems(reminder(account, parts=3, fire_at=due), now=WEDNESDAY)


def test_a_forecast_takes_the_same_few_queries_however_much_there_is(owner: User, account: Account) -> None:
    accounts = [account, *AccountFactory.create_batch(4, owner=owner)]
    small = reminder(account, accounts=accounts[:2], recipients=2)
    large = reminder(account, accounts=accounts, recipients=60)
    counts = []
    for each, runs in ((small, 1), (large, 6)):
        for _ in range(runs):
            under_way(account, pending=3)
        with CaptureQueriesContext(connection) as queries:
            forecast.forecast(Reminder.objects.get(pk=each.pk), now=WEDNESDAY)
        counts.append(len(queries))
    assert counts[0] == counts[1] <= 21


# Runs that are under way.


def test_a_run_says_when_it_will_be_finished(account: Account) -> None:
    run = under_way(account, pending=400, sent=600)
    found = forecasts.forecast(run, now=WEDNESDAY)
    assert found.fits
    assert found.finishes_at is not None
    assert found.finishes_at - WEDNESDAY == pytest.approx(timedelta(minutes=10), rel=0.05)


def test_a_run_is_not_ahead_of_itself_but_others_are(account: Account) -> None:
    run = under_way(account, pending=40)
    under_way(account, pending=400, priority=5)
    found = forecasts.forecast(run, now=WEDNESDAY)
    assert found.timeline.starts_at is not None
    assert found.timeline.starts_at - WEDNESDAY == pytest.approx(timedelta(minutes=10), rel=0.05)


def test_each_account_of_a_run_has_its_own_share(owner: User, account: Account, redis: Redis) -> None:
    other = AccountFactory.create(owner=owner, zone="Europe/Berlin")
    run = under_way(account, pending=5)
    RunAccountFactory.create(run=run, account=other)
    RunTargetFactory.create_batch(4, run=run, account=account)
    RunTargetFactory.create(run=run, account=other)
    found = forecasts.forecast(run, now=WEDNESDAY)
    assert (found.targets, found.timeline.curve[-1].done) == (5, 5)


def test_of_a_large_run_each_account_has_an_even_share(
    owner: User, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workload, "MOST_COUNTED", 10)
    run = under_way(account, pending=81)
    RunAccountFactory.create(run=run, account=AccountFactory.create(owner=owner))
    assert forecasts.forecast(run, now=WEDNESDAY).targets == 82
