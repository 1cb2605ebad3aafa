from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delivery.forecast import (
    MOST_POINTS,
    NoRateError,
    done_at,
    estimate,
    estimate_batches,
    estimate_under,
    simulate,
    thinned,
)
from delivery.pacing import Limits
from delivery.planning.rolling import Rolling
from delivery.planning.values import (
    Allowance,
    Job,
    Pause,
    PauseCause,
    Point,
    Sender,
    SlowDown,
    Timeline,
    rank_of,
)
from delivery.window import Window, is_open

modestly = settings(max_examples=60, deadline=None)

BERLIN = ZoneInfo("Europe/Berlin")
WEDNESDAY = datetime(2026, 3, 11, 10, tzinfo=BERLIN)
ALL_DAY = Window(start_hour=0, end_hour=24, zone="Europe/Berlin")
DAYTIME = Window(start_hour=6, end_hour=18, zone="Europe/Berlin")
BUSINESS = Window(start_hour=9, end_hour=18, days=frozenset(range(5)), zone="Europe/Berlin")
FORTY = Limits(per_minute=40)


def job(
    targets: int, *, window: Window = ALL_DAY, own: bool = False, at: datetime = WEDNESDAY, parts: int = 1
) -> Job:
    return Job(targets=targets, window=window, own=own, ready_at=at, parts=parts)


def timeline(*jobs: Job, now: datetime = WEDNESDAY, limits: Limits = FORTY, **allowance: object) -> Timeline:
    """The timeline of one account's own job among its jobs."""
    given_ = Allowance(limits=limits, **allowance)  # type: ignore[arg-type]  # each by its name
    return simulate([Sender(zone="Europe/Berlin", allowances={"message": given_}, jobs=jobs)], now=now)


def minutes(of: Timeline) -> float:
    assert of.starts_at is not None
    assert of.finishes_at is not None
    return (of.finishes_at - of.starts_at) / timedelta(minutes=1)


# The rule of thumb (S4).


@pytest.mark.parametrize(
    ("targets", "parts", "rate", "expected"),
    [
        (1000, 1, 40, 29),  # 25 minutes, with the margin 28.75
        (0, 1, 40, 0),
        (1, 1, 40, 2),  # a minute that is begun is a minute, and so is its margin
        (1000, 2, 40, 58),
        (41, 1, 40, 3),  # 2 minutes, with the margin 2.3
        (10, 1, 0.5, 23),
    ],
)
def test_the_estimate(targets: int, parts: int, rate: float, expected: int) -> None:
    assert estimate(targets, parts=parts, per_minute=rate) == expected


@pytest.mark.parametrize("rate", [0, -1])
def test_a_rate_of_nothing_is_an_error_that_says_what_to_do(rate: float) -> None:
    with pytest.raises(NoRateError, match="Choose a rate above 0"):
        estimate(10, per_minute=rate)


@modestly
@given(st.integers(1, 100_000), st.floats(2, 10), st.integers(1, 500), st.floats(1, 600))
def test_with_batches_the_estimate_is_within_a_tenth_of_the_formula(
    n: int, d: float, b: int, p: float
) -> None:
    assert estimate_batches(n, delay=d, batch_size=b, batch_pause=p) == pytest.approx(
        n * d + n / b * p, rel=0.1
    )


CAMPAIGN = Limits(per_minute=20, gap_min=3, gap_max=3, batch_size=75, batch_pause=30)


@pytest.mark.parametrize(
    ("limits", "targets", "parts", "expected"),
    [
        (FORTY, 1000, 1, 29),
        (FORTY, 0, 1, 0),
        (CAMPAIGN, 1000, 1, 57),  # 3,400 seconds, and no margin
        (CAMPAIGN, 500, 2, 57),
        (CAMPAIGN, 1, 1, 1),
        (CAMPAIGN, 0, 1, 0),
        (Limits(), 1000, 1, 2),
    ],
)
def test_the_rule_of_thumb_of_an_account(limits: Limits, targets: int, parts: int, expected: int) -> None:
    assert estimate_under(limits, targets, parts=parts) == expected


@modestly
@given(st.integers(500, 100_000), st.floats(2, 10), st.integers(1, 500), st.floats(1, 600))
def test_for_an_account_that_sends_in_batches_it_is_within_a_tenth_of_the_formula(
    n: int, d: float, b: int, p: float
) -> None:
    limits = Limits(per_minute=40, gap_min=d, gap_max=d, batch_size=b, batch_pause=p)
    assert estimate_under(limits, n) == pytest.approx((n * d + n / b * p) / 60, rel=0.1)


def test_without_batches_there_are_no_pauses() -> None:
    assert estimate_batches(100, delay=3) == 300


@modestly
@given(st.integers(20, 200), st.floats(2, 10), st.integers(20, 500), st.floats(10, 120))
def test_the_simulation_agrees_with_the_formula_for_batches(batches: int, d: float, b: int, p: float) -> None:
    limits = Limits(gap_min=d, gap_max=d, batch_size=b, batch_pause=p)
    simulated = minutes(timeline(job(batches * b, own=True), limits=limits)) * 60
    formula = estimate_batches(batches * b, delay=d, batch_size=b, batch_pause=p)
    assert simulated == pytest.approx(formula, rel=0.1)


# The simulation (S5).


def test_a_thousand_at_forty_per_minute_take_25_minutes() -> None:
    assert minutes(timeline(job(1000, own=True))) == pytest.approx(25, rel=0.02)


def test_a_run_without_targets_is_finished_at_once() -> None:
    assert timeline(job(0, own=True)) == Timeline(starts_at=WEDNESDAY, finishes_at=WEDNESDAY)


def test_a_run_that_outlasts_its_window_goes_on_in_the_next() -> None:
    late = WEDNESDAY.replace(hour=17, minute=50)
    found = timeline(job(1000, own=True, window=DAYTIME, at=late), now=late)
    opening = datetime(2026, 3, 12, 6, tzinfo=BERLIN)
    (pause,) = found.pauses
    assert (pause.at, pause.until, pause.cause) == (
        late.replace(hour=18, minute=0),
        opening,
        PauseCause.WINDOW,
    )
    assert pause.done == pytest.approx(400, rel=0.02)
    assert found.finishes_at is not None
    assert found.finishes_at - opening == pytest.approx(timedelta(minutes=15), abs=timedelta(minutes=1))


def test_before_its_window_opens_a_run_waits_for_it() -> None:
    early = WEDNESDAY.replace(hour=4)
    found = timeline(job(10, own=True, window=DAYTIME, at=early), now=early)
    assert found.starts_at == early.replace(hour=6)
    assert [(pause.cause, pause.done) for pause in found.pauses] == [(PauseCause.WINDOW, 0)]


def test_a_weekend_is_no_business_of_a_run_in_business_hours() -> None:
    friday = datetime(2026, 3, 13, 17, 59, tzinfo=BERLIN)
    found = timeline(job(100, own=True, window=BUSINESS, at=friday), now=friday)
    assert found.pauses[0].until == datetime(2026, 3, 16, 9, tzinfo=BERLIN)


def test_a_daily_cap_spreads_a_run_over_days() -> None:
    found = timeline(job(50, own=True, window=DAYTIME), day_caps=(20,), day_used=15)
    assert [(pause.cause, pause.done) for pause in found.pauses] == [
        (PauseCause.DAILY_CAP, done) for done in (5, 25, 45)
    ]
    assert found.finishes_at is not None
    assert found.finishes_at.date() == datetime(2026, 3, 14, tzinfo=UTC).date()


def test_a_warm_up_sends_more_every_day() -> None:
    found = timeline(job(100, own=True, window=DAYTIME), day_caps=(10, 20, 30, 40))
    assert [pause.done for pause in found.pauses] == [10, 30, 60]


def test_a_warm_up_does_not_grow_on_days_without_messages() -> None:
    friday = datetime(2026, 3, 13, 10, tzinfo=BERLIN)
    found = timeline(job(60, own=True, window=BUSINESS, at=friday), now=friday, day_caps=(10, 20, 30))
    assert [pause.done for pause in found.pauses] == [10, 30]
    assert found.finishes_at is not None
    assert found.finishes_at.astimezone(BERLIN).date() == datetime(2026, 3, 17, tzinfo=UTC).date()


@pytest.mark.parametrize(
    ("allowance", "day", "busy", "expected"),
    [
        (Allowance(limits=FORTY), 3, (), None),
        (Allowance(limits=FORTY, day_caps=(5,)), 3, (0, 1, 2), 5),
        (Allowance(limits=FORTY, day_caps=(5, 7, 9)), 3, (), 5),
        (Allowance(limits=FORTY, day_caps=(5, 7, 9)), 3, (0, 2), 9),
        (Allowance(limits=FORTY, day_caps=(5, 7, 9)), 2, (2, 3), 5),
        (Allowance(limits=FORTY, day_caps=(5, 7, 9), day_used=1, reserved={1: 2}), 3, (1,), 9),
        (Allowance(limits=FORTY, day_caps=(5, 7, 9)), 9, (0, 1, 2, 3), 9),
    ],
)
def test_the_cap_of_a_day_grows_with_the_days_before_it_that_have_work(
    allowance: Allowance, day: int, busy: tuple[int, ...], expected: int | None
) -> None:
    assert allowance.cap(day, busy) == expected


def test_a_run_goes_on_once_the_messages_of_a_day_and_a_week_ago_no_longer_count() -> None:
    found = timeline(job(250, own=True), rolling=[Rolling(cap=100, length=timedelta(hours=24))], limits=FORTY)
    assert found.finishes_at is not None
    took = found.finishes_at - WEDNESDAY
    assert timedelta(days=2) <= took <= timedelta(days=2, hours=1)
    assert [pause.cause for pause in found.pauses] == [PauseCause.SPAN_CAP] * 2


def test_what_was_sent_before_counts_in_long_spans() -> None:
    sent = [(WEDNESDAY - timedelta(days=5), 70)]
    rolling = Rolling(cap=100, length=timedelta(days=7), sent=sent)
    found = timeline(job(60, own=True), rolling=[rolling])
    assert found.finishes_at is not None
    assert timedelta(days=2) <= found.finishes_at - WEDNESDAY <= timedelta(days=2, hours=2)


def test_a_run_behind_one_that_is_full_does_not_wait_for_a_day() -> None:
    """Only the account's own action is full: other runs of the same account still wait with it."""
    rolling = Rolling(cap=10, length=timedelta(hours=24))
    found = timeline(job(5), job(5, own=True), rolling=[rolling])
    assert found.finishes_at is not None
    assert found.finishes_at - WEDNESDAY < timedelta(hours=1)


def slowed(targets: int, factor: float, *, clean: int = 0, parts: int = 1) -> float:
    """The seconds that a run takes whose account leaves gaps of 10 s when it is not slowed."""
    sender = Sender(
        zone="Europe/Berlin",
        allowances={"message": Allowance(limits=Limits(gap_min=10, gap_max=10))},
        jobs=[job(targets, own=True, parts=parts)],
        slow_down=SlowDown(factor=factor, clean=clean),
    )
    return minutes(simulate([sender], now=WEDNESDAY)) * 60


@pytest.mark.parametrize(
    ("targets", "factor", "clean", "expected"),
    [
        (61, 1.0, 0, 600),
        (11, 1.5, 0, 150),  # not faster before the twentieth
        (61, 1.5, 0, 20 * 15 + 40 * 10),
        (61, 2.25, 0, 20 * 22.5 + 20 * 15 + 20 * 10),
        (61, 2.25, 15, 5 * 22.5 + 20 * 15 + 35 * 10),
    ],
)
def test_a_slowed_account_recovers_after_every_twenty_messages(
    targets: int, factor: float, clean: int, expected: float
) -> None:
    assert slowed(targets, factor, clean=clean) == pytest.approx(expected)


def test_a_slow_down_counts_messages_and_not_targets() -> None:
    assert slowed(31, 1.5, parts=2) == pytest.approx(10 * 15 + 20 * 10)


def test_runs_are_served_by_rank_wherever_they_stand() -> None:
    later = rank_of(0, WEDNESDAY)
    own = replace(job(10, own=True), rank=later)
    ahead = replace(job(400), rank=rank_of(1, WEDNESDAY + timedelta(days=1)))
    behind = replace(job(400), rank=rank_of(-1, WEDNESDAY - timedelta(days=1)))
    found = timeline(behind, own, ahead)
    assert found.starts_at is not None
    assert found.starts_at - WEDNESDAY == pytest.approx(timedelta(minutes=10), rel=0.03)


def test_what_other_runs_have_planned_for_a_day_is_kept_free() -> None:
    found = timeline(job(30, own=True, window=DAYTIME), day_caps=(20,), reserved={0: 5, 1: 15})
    assert [pause.done for pause in found.pauses] == [15, 20]


def test_runs_that_are_ahead_go_first_and_those_behind_do_not() -> None:
    alone = timeline(job(100, own=True))
    behind = timeline(job(400), job(100, own=True), job(400))
    assert behind.pauses == (
        Pause(at=WEDNESDAY, until=behind.pauses[0].until, cause=PauseCause.OTHER_RUNS, done=0),
    )
    assert behind.starts_at is not None
    assert behind.starts_at - WEDNESDAY == pytest.approx(timedelta(minutes=10), rel=0.03)
    assert minutes(behind) == pytest.approx(minutes(alone))


def test_while_a_run_ahead_has_its_window_closed_the_next_one_is_served() -> None:
    later = Window(start_hour=12, end_hour=18, zone="Europe/Berlin")
    found = timeline(job(400, window=later), job(6000, own=True))
    assert [(pause.cause, pause.at.hour) for pause in found.pauses] == [(PauseCause.OTHER_RUNS, 11)]
    assert found.pauses[0].at == WEDNESDAY.replace(hour=12)


def test_a_run_that_is_fired_later_does_not_pause_until_then() -> None:
    tomorrow = WEDNESDAY + timedelta(days=1)
    found = timeline(job(40, own=True, at=tomorrow))
    assert (found.starts_at, found.pauses) == (tomorrow, ())


def test_what_left_in_the_last_hour_counts() -> None:
    slow = Limits(per_hour=10, gap_min=60, gap_max=60)
    fresh = timeline(job(10, own=True), limits=slow)
    used = timeline(
        job(10, own=True), limits=slow, hour_used=10, hour_since=WEDNESDAY - timedelta(minutes=20)
    )
    assert fresh.starts_at == WEDNESDAY
    assert used.starts_at == WEDNESDAY + timedelta(minutes=40)


def test_an_hour_of_silence_begins_everything_anew() -> None:
    slow = Limits(per_hour=10, gap_min=60, gap_max=60)
    found = timeline(job(10, own=True), limits=slow, hour_used=5, hour_since=WEDNESDAY - timedelta(hours=2))
    assert (found.starts_at, minutes(found)) == (WEDNESDAY, 9)


def test_other_actions_have_limits_of_their_own() -> None:
    allowances = {
        "message": Allowance(limits=FORTY, day_caps=(10,), day_used=10),
        "email": Allowance(limits=FORTY),
    }
    jobs = [
        job(10),
        Job(targets=40, window=ALL_DAY, ready_at=WEDNESDAY, own=True, action="email"),
    ]
    found = simulate([Sender(zone="Europe/Berlin", allowances=allowances, jobs=jobs)], now=WEDNESDAY)
    assert (found.starts_at, found.pauses) == (WEDNESDAY, ())


def test_an_account_that_is_held_back_starts_later() -> None:
    later = WEDNESDAY + timedelta(minutes=7)
    sender = Sender(
        zone="Europe/Berlin",
        allowances={"message": Allowance(limits=FORTY)},
        jobs=[job(10, own=True)],
        free_at=later,
    )
    assert simulate([sender], now=WEDNESDAY).starts_at == later


def test_what_takes_more_than_a_year_has_no_end() -> None:
    found = timeline(job(100_000, own=True, window=DAYTIME), day_caps=(20,))
    assert (found.finishes_at, found.pauses[-1].until) == (None, None)
    assert len(found.curve) == MOST_POINTS


def test_a_message_with_more_parts_than_the_day_allows_never_starts() -> None:
    found = timeline(job(10, own=True, parts=3), day_caps=(2,))
    assert (found.starts_at, found.finishes_at, found.curve) == (None, None, ())
    assert [pause.cause for pause in found.pauses] == [PauseCause.DAILY_CAP]


def senders(*shares: int, caps: Sequence[int] = ()) -> list[Sender]:
    allowance = Allowance(limits=FORTY, day_caps=caps)
    return [
        Sender(
            zone="Europe/Berlin",
            allowances={"message": allowance},
            jobs=[job(share, own=True, window=DAYTIME)],
        )
        for share in shares
    ]


def test_several_accounts_send_side_by_side() -> None:
    found = simulate(senders(500, 500, 400), now=WEDNESDAY)
    assert minutes(found) == pytest.approx(12.5, rel=0.02)
    assert found.curve[-1].done == 1400
    assert done_at(found.curve, WEDNESDAY + timedelta(minutes=5)) == pytest.approx(600, rel=0.02)


def test_the_same_pause_of_several_accounts_is_one() -> None:
    found = simulate(senders(30, 30, caps=[20]), now=WEDNESDAY)
    assert [(pause.cause, pause.done) for pause in found.pauses] == [(PauseCause.DAILY_CAP, 40)]


def test_an_account_without_a_share_does_not_count() -> None:
    assert simulate(senders(0, 0), now=WEDNESDAY) == Timeline(starts_at=WEDNESDAY, finishes_at=WEDNESDAY)


@modestly
@given(
    st.integers(1, 3000),
    st.integers(1, 4),
    st.lists(st.integers(4, 400), max_size=3),
    st.sampled_from([FORTY, Limits(per_hour=10, gap_min=180, gap_max=300), Limits(gap_min=3, gap_max=3)]),
    st.sampled_from([ALL_DAY, DAYTIME, BUSINESS]),
    st.integers(0, 24 * 60),
)
def test_nothing_is_served_outside_windows_or_over_caps_and_nobody_is_lost(
    targets: int, parts: int, caps: list[int], limits: Limits, window: Window, late: int
) -> None:
    now = datetime(2026, 3, 27, tzinfo=BERLIN) + timedelta(minutes=late)  # the clock changes on Sunday
    own = job(targets, own=True, parts=parts, window=window, at=now)
    found = timeline(own, now=now, limits=limits, day_caps=tuple(caps))
    served = [0] * 400
    for before, after in list(pairwise(found.curve))[::2] if len(found.curve) < MOST_POINTS else []:
        assert is_open(window, before.at)
        assert is_open(window, after.at)
        day = (before.at.astimezone(BERLIN).date() - now.date()).days
        served[day] += (after.done - before.done) * parts
    if caps:  # a warm-up: one step after each day on which something was sent
        worked = 0
        for count in served:
            assert count <= caps[min(worked, len(caps) - 1)]
            worked += count > 0
    assert [point.at for point in found.curve] == sorted(point.at for point in found.curve)
    if found.finishes_at is not None:
        assert found.curve[-1] == Point(at=found.finishes_at, done=targets)


def test_a_curve_keeps_its_ends_when_it_is_thinned() -> None:
    long = [Point(at=WEDNESDAY + timedelta(hours=number), done=number) for number in range(1000)]
    short = thinned(long, most=10)
    assert (len(short), short[0], short[-1]) == (10, long[0], long[-1])


def test_before_its_first_point_a_curve_is_at_nothing() -> None:
    assert done_at([Point(at=WEDNESDAY, done=5)], WEDNESDAY - timedelta(seconds=1)) == 0
