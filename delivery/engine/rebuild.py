"""Reads from the ledger what the limiter is told of an account after Redis lost it (SPEC P8)."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import ceil
from typing import Any

from accounts.models import Account, TestMessage
from activity import ledger
from delivery.conf import longest_send
from delivery.limiter import Day, Memory
from delivery.models import RunTarget
from delivery.pacing import Pace, batch_position, bucket_width
from delivery.states import TargetStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Hand:
    """The asking pump's fencing number, its permits and rights, and how many of the permits are in flight."""

    fence: int
    permits: Mapping[str, int] = field(default_factory=dict)
    in_flight: int = 0
    rights: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spans:
    """The time by Redis' clock, how far back to look, how long a gap is, and how far clocks may differ.

    Each message counts as seen `margin_ms` later than its worker's clock said, though not later than now: so it
    leaves no window too early by Redis' clock.
    """

    now_ms: int
    reach_ms: int
    gap_ms: int
    margin_ms: int = 0
    long_ms: Sequence[int] = ()  # the lengths of the long spans that have a cap
    week_ms: Sequence[int] = ()  # the same of the week in which new people are counted

    def latest(self, at: datetime) -> int:
        """Return the latest that Redis' clock can have read when a worker's clock read `at`.

        A worker whose clock was ahead may have dated a message an hour later than it is now.
        """
        return min(_ms(at) + self.margin_ms, self.now_ms)

    def earliest(self, at_ms: int) -> datetime:
        """Return the earliest that a worker's clock can have read when Redis' clock read `at_ms`."""
        return datetime.fromtimestamp((at_ms - self.margin_ms) / 1000, UTC)


def memory(account: Account, action: str, *, pace: Pace, day: Day, spans: Spans, hand: Hand) -> Memory:
    """Return all that counts against the account's limits now.

    A message that another pump holds is in no ledger row yet. That pump may be alive: it lost its lease with
    Redis' memory, and its message may still be under way. So each counts as arriving as late as it can.
    """
    own, others = _under_way(account, hand.fence)
    farthest = spans.now_ms - max([spans.reach_ms, *spans.long_ms])
    doubts = [
        *sorted(own)[hand.in_flight :],
        *others,
        *_lost_tests(account, since=spans.earliest(min(day.start_ms, farthest))),
    ]
    arrivals = [_latest_arrival(at, spans) for at in doubts]
    begun = ledger.latest_times(account.pk, action, most=max(1, pace.batch_size))
    batch = batch_position(
        [_ms(at) for at in begun], batch_size=pace.batch_size, batch_pause_ms=pace.batch_pause_ms
    )
    seen = ledger.seen_times(account.pk, action, since=spans.earliest(spans.now_ms - spans.reach_ms))
    day_used = ledger.count_since(account.pk, action, since=spans.earliest(day.start_ms))
    last = spans.latest(begun[-1]) if begun else 0
    starts = [last, *map(spans.latest, own), *[spans.now_ms] * bool(doubts), *hand.permits.values()]
    return Memory(
        day=day,
        day_used=day_used + len(doubts) + len(hand.permits),
        reach_ms=spans.reach_ms,
        times_ms=[spans.latest(at) for at in seen] + arrivals,
        in_flight=hand.permits,
        counts={span: _in_buckets(account, action, span, spans, arrivals) for span in spans.long_ms},
        **_people(account, action, pace, day, spans, hand),
        batch=min(pace.batch_size, batch + len(doubts) + len(hand.permits)),
        last_ms=last,
        free_at_ms=max(starts) + spans.gap_ms,
        held_until_ms=_ms(account.held_until) if account.held_until else 0,
    )


def _people(account: Account, action: str, pace: Pace, day: Day, spans: Spans, hand: Hand) -> dict[str, Any]:
    """Return what counts against the limits of new people; those whom another pump may be writing to count too."""
    if not pace.counts_people:
        return {}
    since = spans.earliest(
        min([day.start_ms, *(spans.now_ms - week - bucket_width(week) for week in spans.week_ms)])
    )
    met = [spans.latest(at) for at in ledger.new_people(account.pk, action, since=since)]
    others = RunTarget.objects.filter(account=account, status=TargetStatus.SENDING, new_person__gt=0)
    doubts = others.exclude(fence=hand.fence).values_list("begun_at", flat=True)
    met += [_latest_arrival(begun, spans) for begun in doubts]
    today = [at for at in met if at >= day.start_ms]
    return {
        "counts_people": True,
        "rights": hand.rights,
        "new_used": len(today) + len(hand.rights),
        "new_late": [at for at in today if at >= day.end_ms],
        "new_counts": {week: Counter(at // bucket_width(week) for at in met) for week in spans.week_ms},
    }


def _in_buckets(
    account: Account, action: str, span: int, spans: Spans, doubts: Sequence[int]
) -> Mapping[int, int]:
    """Count the messages of a long span by its buckets, those in doubt included."""
    width = bucket_width(span)
    known = ledger.in_buckets(
        account.pk,
        action,
        since=spans.earliest(spans.now_ms - span - width),
        now_ms=spans.now_ms,
        margin_ms=spans.margin_ms,
        width_ms=width,
    )
    return Counter(known) + Counter(at // width for at in doubts)


def _under_way(account: Account, fence: int) -> tuple[list[datetime], list[datetime | None]]:
    """List when the pump of `fence` began what it has under way, and the same of other pumps.

    Targets of other pumps count whether they have begun or not (None): the statement that lets a stale pump begin may
    have been under way when the next one took its lease, and be written only after this one has looked.
    """
    held = RunTarget.objects.filter(account=account, status=TargetStatus.SENDING)
    rows = list(held.values_list("fence", "begun_at"))
    own = [at for number, at in rows if number == fence and at is not None]
    return own, [at for number, at in rows if number != fence]


def _lost_tests(account: Account, *, since: datetime) -> list[datetime | None]:
    """List when test messages began that have not ended, one entry per part: their worker may have died."""
    begun = TestMessage.objects.filter(account=account, begun_at__gte=since, ended_at=None)
    return [at for at, parts in begun.values_list("begun_at", "messages") for _ in range(parts)]


def _latest_arrival(begun_at: datetime | None, spans: Spans) -> int:
    """Return the latest moment at which a message that began then, or is about to begin, can arrive."""
    begun_ms = spans.now_ms if begun_at is None else spans.latest(begun_at)
    return max(spans.now_ms, begun_ms + ceil(longest_send(with_file=False).total_seconds() * 1000))


def _ms(at: datetime) -> int:
    return ceil(at.timestamp() * 1000)
