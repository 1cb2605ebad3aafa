"""Computes how fast an account may send, and when it has to slow down or stop (SPEC P).

Everything here is arithmetic on the caller's arguments: the limiter enforces the caps, and the ledger is the truth.
Times are seconds, except where a name ends in `_ms`.
"""

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

SPREAD_JITTER = 0.12
"""The share by which the spread of a minute cap varies to either side.

A cap is kept by an exact sliding log, so message i leaves at `max(at[i-1] + gap, at[i-limit] + window)`: a
stretch of short gaps waits for the window, a stretch of long ones is lost, and so jitter costs rate. Over
1,000 messages, averaged over 200 seeds, this much of the allowed rate remains:

    jitter           0.05     0.10     0.12     0.14     0.20     0.30
    40 per 60 s     99.67    99.35    99.22    99.09    98.71    98.07 %
    20 per 1 s      99.56    99.11    98.93    98.76    98.24    97.38 %

0.12 keeps 98.8 % in both with a little room, and moves each message by up to 180 ms at 40 per minute. The
draws are independent, so it does not matter how few gaps are asked for at a time.
"""

LONGEST_SECONDS = 86_400.0

LONG_SPANS: Mapping[str, int] = {"per_24_hours": 24, "per_7_days": 7 * 24, "per_30_days": 30 * 24}
"""The caps over a moving span of more than an hour, each with the hours of its span."""

WEEK_HOURS = 7 * 24  # of the limit of new people: a moving span

BUCKETS = 96
"""The parts in which the limiter counts a long span: a message counts up to a part longer than it has to."""


class BadLimitError(ValueError):
    """Raised for a limit that is not possible; its text is for the operator who wrote it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of an account for one action; None is no cap.

    Between two messages a random gap from `gap_min` to `gap_max` is left, and after every `batch_size`
    messages a pause of `batch_pause`; either of these at 0 means no batches.
    """

    per_minute: int | None = None
    per_hour: int | None = None
    per_day: int | None = None
    per_24_hours: int | None = None
    per_7_days: int | None = None
    per_30_days: int | None = None
    new_per_day: int | None = None
    new_per_week: int | None = None
    gap_min: float = 0.0
    gap_max: float = 0.0
    batch_size: int = 0
    batch_pause: float = 0.0

    def __post_init__(self) -> None:
        _check_cap("minute", self.per_minute)
        _check_cap("hour", self.per_hour)
        _check_cap("day", self.per_day)
        for name in LONG_SPANS:
            _check_cap(span_words(name), getattr(self, name))
        _check_cap("day to new people", self.new_per_day)
        _check_cap("week to new people", self.new_per_week)
        _check_seconds("shortest gap", self.gap_min)
        _check_seconds("longest gap", self.gap_max)
        _check_seconds("batch pause", self.batch_pause)
        if self.gap_min > self.gap_max:
            raise BadLimitError(
                f"The shortest gap ({self.gap_min:g} s) is above the longest ({self.gap_max:g} s). Swap them."
            )
        if self.batch_size < 0:
            raise BadLimitError(f"A batch cannot have {self.batch_size} messages. Write 0 for no batches.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """The caps and batches in the limiter's form: whole numbers and milliseconds, 0 for none."""

    per_minute: int
    per_hour: int
    per_day: int
    batch_size: int
    batch_pause_ms: int
    per_24_hours: int = 0
    per_7_days: int = 0
    per_30_days: int = 0
    new_per_day: int = 0
    new_per_week: int = 0

    @property
    def counts_people(self) -> bool:
        """Decide whether new people have a limit of their own."""
        return bool(self.new_per_day or self.new_per_week)

    @property
    def long_caps(self) -> dict[str, int]:
        """Return the caps of long spans that are set, by their names."""
        return {name: cap for name in LONG_SPANS if (cap := getattr(self, name))}


def span_words(name: str) -> str:
    """Return the words of a long span: per_24_hours is "24 hours"."""
    return name.removeprefix("per_").replace("_", " ")


def bucket_width(span: int) -> int:
    """Return how long a bucket of a long span is, in the unit of `span`."""
    return math.ceil(span / BUCKETS)


def strictest(*limits: Limits) -> Limits:
    """Return limits that keep every one of `limits` (P2): the smallest caps and batches, the longest gaps.

    Each value is taken by itself, so the result can be stricter than any one of them, and is never looser.
    """
    return Limits(
        per_minute=_smallest(each.per_minute for each in limits),
        per_hour=_smallest(each.per_hour for each in limits),
        per_day=_smallest(each.per_day for each in limits),
        per_24_hours=_smallest(each.per_24_hours for each in limits),
        per_7_days=_smallest(each.per_7_days for each in limits),
        per_30_days=_smallest(each.per_30_days for each in limits),
        new_per_day=_smallest(each.new_per_day for each in limits),
        new_per_week=_smallest(each.new_per_week for each in limits),
        gap_min=max((each.gap_min for each in limits), default=0.0),
        gap_max=max((each.gap_max for each in limits), default=0.0),
        batch_size=_smallest(each.batch_size for each in limits) or 0,
        batch_pause=max((each.batch_pause for each in limits), default=0.0),
    )


def pace_of(limits: Limits) -> Pace:
    """Return the limits in the limiter's form."""
    batches = limits.batch_size > 0 and limits.batch_pause > 0
    return Pace(
        per_minute=limits.per_minute or 0,
        per_hour=limits.per_hour or 0,
        per_day=limits.per_day or 0,
        batch_size=limits.batch_size if batches else 0,
        batch_pause_ms=math.ceil(limits.batch_pause * 1000) if batches else 0,
        per_24_hours=limits.per_24_hours or 0,
        per_7_days=limits.per_7_days or 0,
        per_30_days=limits.per_30_days or 0,
        new_per_day=limits.new_per_day or 0,
        new_per_week=limits.new_per_week or 0,
    )


def gaps_ms(limits: Limits, *, cost: int, count: int, stretch: float, rng: random.Random) -> list[int]:
    """Return the time to leave free after each of `count` units of `cost` messages (P2, P3), times `stretch`.

    Each is the larger of the random gap and the spread, which is an even share of the cap with SPREAD_JITTER. A gap
    that already reaches the even share is left as drawn: jitter on top would only slow the account down.
    """
    spread = spread_ms(limits, cost)
    return [_gap_ms(limits, spread, stretch, rng) for _ in range(count)]


def shortest_gap_ms(limits: Limits, cost: int) -> float:
    """Return the shortest gap that `gaps_ms` may draw.

    However late a message leaves, the next one leaves no sooner after it than this.
    """
    return max(limits.gap_min * 1000, spread_ms(limits, cost) * (1 - SPREAD_JITTER))


def spread_ms(limits: Limits, cost: int) -> float:
    """Return an even share of the caps for `cost` messages.

    The hour cap is spread only where no gap is set. A gap is a pace that a person chose; the hour cap then only
    limits the total.
    """
    minute = cost * 60_000 / limits.per_minute if limits.per_minute else 0.0
    hour = cost * 3_600_000 / limits.per_hour if limits.per_hour and not limits.gap_max else 0.0
    return max(minute, hour)


def fixed_delay(seconds: float, *, shortest: float = 2.0, longest: float = 10.0) -> float:
    """Return `seconds` if this is an allowed fixed delay between two messages (P5); else raise BadLimitError."""
    if not shortest <= seconds <= longest:
        raise BadLimitError(
            f"A fixed delay of {seconds:g} s is not possible. Choose {shortest:g} to {longest:g} seconds."
        )
    return seconds


def error_rate(sent: int, failed: int) -> float:
    """Return the share of attempts that failed; 0 before the first attempt."""
    attempts = sent + failed
    return failed / attempts if attempts else 0.0


def adaptive_delay(
    base: float, rate: float, *, threshold: float = 0.05, factor: float = 1.5, maximum: float = 10.0
) -> float:
    """Return the delay at an error rate of `rate` (P6): above `threshold` exactly `factor * base`, up to `maximum`.

    A base that is itself above the maximum stays as it is: errors never make an account faster.
    """
    if rate <= threshold:
        return base
    return max(base, min(base * factor, maximum))


def stretch_for(
    rate: float, *, base: float, threshold: float = 0.05, factor: float = 1.5, maximum: float = 10.0
) -> float:
    """Return the factor for a delay of `base` at an error rate of `rate`: `adaptive_delay` as a factor."""
    if base <= 0:
        return factor if rate > threshold else 1.0
    return adaptive_delay(base, rate, threshold=threshold, factor=factor, maximum=maximum) / base


def breaker_trips(sent: int, failed: int, *, threshold: float = 0.20, minimum: int = 10) -> bool:
    """Decide whether a run has to pause for its error rate (P6): above `threshold`, from `minimum` attempts on."""
    return sent + failed >= minimum and error_rate(sent, failed) > threshold


LEARNS_UP_TO = 900.0
"""Seconds. A service that asks for a longer wait means a quota of the hour or the day, which no pace can keep."""
ABOVE_THE_JITTER = 1.15  # no drawn gap is shorter than the gap that the service allowed


def slower(
    factor: float, *, gap: float, seen: float | None = None, by: float = 1.5, longest: float = 3600.0
) -> float:
    """Return the account's slow-down after a rate-limit answer: one step, or as slow as the service allows.

    `gap` is the usual time between two messages at full speed, and `seen` the time between two that the service was
    seen to allow, if that is known. A factor that makes gaps of more than `longest` is not increased.
    """
    step = factor * by
    if seen is not None and gap > 0:
        step = max(step, seen * ABOVE_THE_JITTER / gap)
    return max(factor, min(step, longest / gap)) if gap > 0 else step


def allowed_gap(*, since: float, until: float, sent: int) -> float | None:
    """Return the time between two messages that a service allows, as far as was seen.

    `since` is when the service took messages again after the last rate-limit answer, `until` when it will after this
    one, and `sent` how many it took in between. A longer wait than LEARNS_UP_TO says nothing about the pace.
    """
    return (until - since) / sent if sent > 0 and until > since else None


def usual_gap(limits: Limits, cost: int = 1) -> float:
    """Return the mean time between two units of `cost` messages, in seconds."""
    return max((limits.gap_min + limits.gap_max) / 2, spread_ms(limits, cost) / 1000)


def ramp(since: float, *, length: float, least: float = 0.1) -> float:
    """Return how many times longer gaps are, `since` seconds after an account connected again (P18).

    Its pace grows evenly from the share `least` to the whole within `length` seconds.
    """
    if length <= 0 or since >= length:
        return 1.0
    return 1 / (least + (1 - least) * max(0.0, since) / length)


def ramp_loss(since: float, *, length: float, least: float = 0.1) -> float:
    """Return how many seconds at full pace the rest of a ramp costs."""
    left = max(0.0, length - max(0.0, since))
    return (1 - least) * left * left / (2 * length) if length > 0 else 0.0


def recovered(factor: float, clean_sends: int, *, by: float = 1.5, every: int = 20) -> float:
    """Return what is left of a slow-down after `clean_sends` messages in a row without a rate-limit answer.

    One step of `slower` is taken back after `every` of them, until the factor is 1 again.
    """
    for _ in range(clean_sends // every):
        if factor <= 1:
            break
        factor /= by
    return max(1.0, factor)


def batch_position(sent_at_ms: Sequence[int], *, batch_size: int, batch_pause_ms: int) -> int:
    """Return how many messages of the current batch were sent, by their times in ascending order.

    This is for a limiter that lost its count. A silence of a whole pause ends a batch, whatever caused the silence; the
    caller adds the silence since the last message. `batch_size` means that the batch is full and its pause is due.
    This is also the answer where the times show no pause between two batches: losing the count can cost one pause too
    many, and never saves one.
    """
    if batch_size <= 0 or batch_pause_ms <= 0 or not sent_at_ms:
        return 0
    latest = sent_at_ms[-batch_size:]
    for position in range(1, len(latest)):
        if latest[-position] - latest[-position - 1] >= batch_pause_ms:
            return position
    return len(latest)


def _gap_ms(limits: Limits, spread: float, stretch: float, rng: random.Random) -> int:
    gap = rng.uniform(limits.gap_min, limits.gap_max) * 1000
    if gap >= spread:
        return math.ceil(gap * stretch)
    jittered = spread * rng.uniform(1 - SPREAD_JITTER, 1 + SPREAD_JITTER)
    # Rounded to the nearest: rounding up would cost one percent of a rate of 20 per second.
    return round(max(gap, jittered) * stretch)


def _smallest(caps: Iterable[int | None]) -> int | None:
    return min((cap for cap in caps if cap), default=None)


def _check_cap(period: str, cap: int | None) -> None:
    if cap is not None and cap < 1:
        raise BadLimitError(
            f"At most {cap} per {period} would never send. Leave it empty for no limit, or pause the account."
        )


def _check_seconds(what: str, seconds: float) -> None:
    if not 0 <= seconds <= LONGEST_SECONDS:
        raise BadLimitError(
            f"The {what} of {seconds:g} s must be from 0 seconds to a day ({LONGEST_SECONDS:g} s)."
        )
