"""Forecasts how long a run takes, when it pauses on the way, and when it finishes (SPEC S4, S5). Pure.

`estimate` is a rule of thumb. `simulate` goes through the days as the engine would, with everything that slows
an account: limits, windows, caps, batches and the other runs of its accounts. Neither ever blocks.
"""

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from delivery.pacing import Limits, adaptive_delay
from delivery.planning.simulation import AccountSimulation, Delay
from delivery.planning.values import Pause, PauseCause, Point, Sender, Timeline

MARGIN_PERCENT = 15
MOST_POINTS = 300  # points of a curve: more than a page can draw
UNPACED = 60_000  # messages per minute where there is no limit


class NoRateError(ValueError):
    """Raised for a rate at which nothing is ever sent; its text is for the operator."""


def estimate(targets: int, *, parts: int = 1, per_minute: float) -> int:
    """Return the minutes that `targets` of `parts` messages take: `ceil(N*parts/R)` plus 15 %, rounded up.

    The result is 0 for no targets, else at least 1. 1,000 at 40 per minute are 25, with the margin 28.75, so 29.
    """
    if not per_minute > 0:
        raise NoRateError("At 0 messages per minute nothing is ever sent. Choose a rate above 0.")
    whole = math.ceil(targets * parts / per_minute)
    return math.ceil(whole * (100 + MARGIN_PERCENT) / 100)


def estimate_batches(messages: int, *, delay: float, batch_size: int = 0, batch_pause: float = 0.0) -> float:
    """Return the seconds for `messages` with a fixed delay and a pause after every batch: `N*D + (N/B)*P`."""
    batches = messages / batch_size if batch_size else 0.0
    return messages * delay + batches * batch_pause


def estimate_under(limits: Limits, targets: int, *, parts: int = 1) -> int:
    """Return the minutes for an account: by its rate, or by the batch formula where it sends in batches."""
    if not (limits.batch_size and limits.batch_pause):
        return estimate(targets, parts=parts, per_minute=limits.per_minute or UNPACED)
    by_rate = 60 / limits.per_minute if limits.per_minute else 0.0
    delay = max(by_rate, (limits.gap_min + limits.gap_max) / 2)
    seconds = estimate_batches(
        targets * parts, delay=delay, batch_size=limits.batch_size, batch_pause=limits.batch_pause
    )
    return math.ceil(seconds / 60)


def simulate(
    senders: Iterable[Sender], *, now: datetime, minute: float = 60.0, delay: Delay = adaptive_delay
) -> Timeline:
    """Return the timeline of the run whose jobs are `own`, over all its accounts in parallel.

    A minute of the limits lasts `minute` seconds (MINUTE_SECONDS); `delay` returns the gap after errors.
    """
    return together(simulate_each(senders, now=now, minute=minute, delay=delay), now=now)


def simulate_each(
    senders: Iterable[Sender], *, now: datetime, minute: float = 60.0, delay: Delay = adaptive_delay
) -> list[Timeline | None]:
    """Return the timeline of each account; None where the run has nothing for it."""
    simulations = [AccountSimulation(sender, now=now, minute=minute, delay=delay) for sender in senders]
    return [simulation.timeline() if simulation.own else None for simulation in simulations]


def together(each: Iterable[Timeline | None], *, now: datetime) -> Timeline:
    """Return the timeline of a run from those of its accounts."""
    timelines = [timeline for timeline in each if timeline is not None]
    if not timelines:
        return Timeline(starts_at=now, finishes_at=now)
    timeline = timelines[0] if len(timelines) == 1 else _side_by_side(timelines)
    return replace(timeline, curve=thinned(timeline.curve), people=thinned(timeline.people))


def thinned(curve: Sequence[Point], most: int = MOST_POINTS) -> tuple[Point, ...]:
    """Return at most `most` points of a curve; the first and the last always stay."""
    if len(curve) <= most:
        return tuple(curve)
    last = len(curve) - 1
    return tuple(curve[round(number * last / (most - 1))] for number in range(most))


def done_at(curve: Sequence[Point], at: datetime) -> float:
    """Return how many targets are served by a moment."""
    right = bisect_right(curve, at, key=lambda point: point.at)
    if right == 0:
        return 0.0
    before = curve[right - 1]
    if right == len(curve):
        return float(before.done)
    after = curve[right]
    share = (at - before.at) / (after.at - before.at)
    return before.done + share * (after.done - before.done)


def _side_by_side(timelines: Sequence[Timeline]) -> Timeline:
    """Return the timeline of the whole run: it begins with its first account and finishes with its last."""
    starts = [timeline.starts_at for timeline in timelines if timeline.starts_at]
    finishes = [timeline.finishes_at for timeline in timelines if timeline.finishes_at]
    curves = [thinned(timeline.curve) for timeline in timelines]
    return Timeline(
        starts_at=min(starts, default=None),
        finishes_at=max(finishes) if len(finishes) == len(timelines) else None,
        pauses=_merged([pause for timeline in timelines for pause in timeline.pauses], curves),
        curve=_summed(curves),
        people=_summed([thinned(timeline.people) for timeline in timelines if timeline.people]),
    )


def _summed(curves: Sequence[Sequence[Point]]) -> tuple[Point, ...]:
    moments = sorted({point.at for curve in curves for point in curve})
    step = max(1, len(moments) // MOST_POINTS)
    drawn = moments[::step] + moments[-1:] * (len(moments) % step != 1)
    return tuple(Point(at=at, done=round(sum(done_at(curve, at) for curve in curves))) for at in drawn)


def _merged(pauses: Iterable[Pause], curves: Sequence[Sequence[Point]]) -> tuple[Pause, ...]:
    """Merge the waits of accounts that wait for the same reason until the same moment into one pause of the run."""
    merged: dict[tuple[PauseCause, datetime | None], Pause] = {}
    for pause in sorted(pauses, key=lambda each: each.at):
        done = round(sum(done_at(curve, pause.at) for curve in curves))
        merged.setdefault((pause.cause, pause.until), replace(pause, done=done))
    return tuple(merged.values())
