"""Asks limiter.lua: one round trip to Redis per question."""

import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from redis import Redis
from redis.exceptions import (
    ClusterDownError,
    ConnectionError,  # noqa: A004 - the names that redis-py gives them
    OutOfMemoryError,
    ReadOnlyError,
    TimeoutError,  # noqa: A004
    TryAgainError,
)

from delivery.engine.lease import TTL_MS, Lease, lease_key
from delivery.limiter.replies import Reply, noted, taken, use
from delivery.limiter.values import (
    Ask,
    Away,
    Day,
    Done,
    Forgotten,
    Granted,
    LeaseLost,
    Memory,
    Met,
    Noted,
    Use,
    Wait,
    WrongClock,
)
from delivery.pacing import LONG_SPANS, WEEK_HOURS, Pace

ACTIONS: Final = ("message", "email", "connection_request", "inmail")

SCRIPT: Final = Path(__file__).with_name("limiter.lua").read_text(encoding="utf-8")

# A server that is loading, out of memory or no longer the primary cannot give permits.
AWAY: Final = (
    ConnectionError,
    TimeoutError,
    ReadOnlyError,
    OutOfMemoryError,
    ClusterDownError,
    TryAgainError,
)


class Limiter:
    """The limiters of all accounts.

    minute_ms and hour_ms scale time for tests and benchmarks. No unit starts later than horizon_ms from now:
    limits, pauses and windows may change, and whoever has a permit has to give it back then. Nor does one start later
    than near_ms after the one before: a longer wait is not spent with a permit in hand. Redis' own clock counts, unless
    now_ms gives another.
    """

    def __init__(
        self,
        redis: Redis,
        *,
        minute_ms: int = 60_000,
        hour_ms: int = 3_600_000,
        horizon_ms: int = 10_000,
        near_ms: int | None = None,
        lease_ttl_ms: int = TTL_MS,
        now_ms: Callable[[], int] | None = None,
    ) -> None:
        self._redis = redis
        self._script = redis.register_script(SCRIPT)
        self._minute_ms = minute_ms
        self._hour_ms = hour_ms
        self._horizon_ms = horizon_ms
        self._near_ms = horizon_ms if near_ms is None else near_ms
        self._lease_ttl_ms = lease_ttl_ms
        self._now_ms = now_ms

    def reach_ms(self, pace: Pace) -> int:
        """Return how far back the log of an account with this pace has to go."""
        if pace.per_hour:
            return self._hour_ms
        return self._minute_ms if pace.per_minute else 0

    def spans_ms(self, pace: Pace) -> dict[str, int]:
        """Return the long spans that have a cap, with their lengths."""
        return {name: LONG_SPANS[name] * self._hour_ms for name in pace.long_caps}

    def _spans(self, pace: Pace) -> list[dict[str, Any]]:
        lengths = self.spans_ms(pace)
        return [{"name": name, "span": lengths[name], "cap": cap} for name, cap in pace.long_caps.items()]

    def week_ms(self, pace: Pace) -> tuple[int, ...]:
        """Return the length of the week in which new people are counted, where it has a cap."""
        return (WEEK_HOURS * self._hour_ms,) if pace.new_per_week else ()

    def _new_spans(self, pace: Pace) -> list[dict[str, Any]]:
        return [
            {"name": "new_per_week", "span": span, "cap": pace.new_per_week} for span in self.week_ms(pace)
        ]

    def take(self, ask: Ask) -> Granted | Wait | WrongClock | LeaseLost | Forgotten | Away:
        """Return permits within the horizon, or when to come back and why. Renews the lease."""
        _refuse_mistakes(ask)
        return taken(self._call("take", ask.lease.account_id, ask.action, self._take_argument(ask)))

    def settle(
        self,
        lease: Lease,
        action: str,
        settled: Mapping[str, int],
        returned: Sequence[str] = (),
        *,
        mark: str,
        people: Sequence[Met] = (),
        free_at_ms: int = 0,
    ) -> Noted:
        """Record the settled and returned permits as `take` does, without asking for new ones. Renews the lease."""
        argument = self._holder(lease) | _news(settled, returned, people, free_at_ms) | {"mark": mark}
        return noted(self._call("settle", lease.account_id, action, argument))

    def hold(self, lease: Lease, action: str, until_ms: int, *, mark: str) -> Noted:
        """Grant nothing before `until_ms`, because a service asked for a wait. The later of two holds stays."""
        argument = self._holder(lease) | {"held_until": until_ms, "mark": mark}
        return noted(self._call("hold", lease.account_id, action, argument))

    def rebuild(self, lease: Lease, action: str, memory: Memory) -> Noted:
        """Replace the state with what the ledger knows. Renews the lease."""
        argument = self._holder(lease) | {
            # Permits and marks of the lost state must not be mistaken for those of the new one.
            "epoch": secrets.token_hex(8),
            "reach": memory.reach_ms,
            "day_start": memory.day.start_ms,
            "day_end": memory.day.end_ms,
            "used": memory.day_used,
            "counts": {str(span): _named(buckets) for span, buckets in memory.counts.items()},
            "times": list(memory.times_ms),
            "in_flight": dict(memory.in_flight),
            "rights": dict(memory.rights),
            "counts_people": memory.counts_people,
            "new_used": memory.new_used,
            "new_late": list(memory.new_late),
            "new_counts": {str(span): _named(buckets) for span, buckets in memory.new_counts.items()},
            "batch": memory.batch,
            "last_start": memory.last_ms,
            "free_at": memory.free_at_ms,
            "held_until": memory.held_until_ms,
        }
        return noted(self._call("rebuild", lease.account_id, action, argument))

    def forget(self, account_id: int) -> Done | Away:
        """Drop the state of an account, for all actions; its lease stays."""
        keys = [key for action in ACTIONS for key in _keys(account_id, action)[1:]]
        try:
            self._redis.delete(*keys)
        except AWAY as error:
            return Away(reason=str(error))
        return Done()

    def peek(self, account_id: int, action: str, pace: Pace, day: Day) -> Use | Forgotten | Away:
        """Return how much of its limits an account has used, for the pages; changes nothing."""
        return use(self._call("peek", account_id, action, self._peek_argument(pace, day)), pace)

    def peek_all(self, questions: Sequence[tuple[int, str, Pace, Day]]) -> list[Use | Forgotten | Away]:
        """Return the use of many accounts and actions, in one round trip."""
        pipeline = self._redis.pipeline(transaction=False)
        for account_id, action, pace, day in questions:
            argument = json.dumps(self._peek_argument(pace, day))
            self._script(keys=_keys(account_id, action), args=["peek", argument], client=pipeline)
        try:
            replies = pipeline.execute()
        except AWAY as error:
            return [Away(reason=str(error))] * len(questions)
        return [
            use(json.loads(reply), pace) for reply, (_, _, pace, _) in zip(replies, questions, strict=True)
        ]

    def _peek_argument(self, pace: Pace, day: Day) -> dict[str, Any]:
        return self._dated(
            {
                "minute": self._minute_ms,
                "hour": self._hour_ms,
                "reach": self.reach_ms(pace),
                "day_start": day.start_ms,
                "day_end": day.end_ms,
                "spans": self._spans(pace),
                "counts_people": pace.counts_people,
                "new_spans": self._new_spans(pace),
            }
        )

    def _holder(self, lease: Lease) -> dict[str, Any]:
        return {"token": lease.token, "lease_ttl": self._lease_ttl_ms}

    def _take_argument(self, ask: Ask) -> dict[str, Any]:
        return self._holder(ask.lease) | {
            **_news(ask.settled, ask.returned, ask.people, ask.free_at_ms),
            **_expected(ask),
            "mark": ask.mark,
            "cost": ask.cost,
            "gaps": list(ask.gaps_ms),
            "horizon": self._horizon_ms,
            "near": self._near_ms,
            # How soon to ask again where only permits in flight block the next one: a second of a real minute.
            "recheck": max(1, self._minute_ms // 60),
            "per_minute": ask.pace.per_minute,
            "minute": self._minute_ms,
            "per_hour": ask.pace.per_hour,
            "hour": self._hour_ms,
            "per_day": ask.pace.per_day,
            "day_start": ask.day.start_ms,
            "day_end": ask.day.end_ms,
            "spans": self._spans(ask.pace),
            "counts_people": ask.pace.counts_people,
            "new_wanted": ask.new_wanted,
            "people_under_way": ask.people_under_way,
            "new_per_day": ask.pace.new_per_day,
            "new_spans": self._new_spans(ask.pace),
            "batch_size": ask.pace.batch_size,
            "batch_pause": ask.pace.batch_pause_ms,
            "reach": self.reach_ms(ask.pace),
        }

    def _call(self, verb: str, account_id: int, action: str, argument: dict[str, Any]) -> Reply:
        try:
            reply = self._script(
                keys=_keys(account_id, action), args=[verb, json.dumps(self._dated(argument))]
            )
        except AWAY as error:
            return Away(reason=str(error))
        decoded: list[Any] = json.loads(reply)
        return decoded

    def _dated(self, argument: dict[str, Any]) -> dict[str, Any]:
        return argument if self._now_ms is None else argument | {"now": self._now_ms()}


def _news(
    settled: Mapping[str, int],
    returned: Sequence[str],
    people: Sequence[Met],
    free_at_ms: int,
) -> dict[str, Any]:
    return {
        "settled": dict(settled),
        "returned": list(returned),
        "people": [[each.right, each.at_ms, each.anew, each.before_ms] for each in people],
        "free_at": free_at_ms,
    }


def _named(buckets: Mapping[int, int]) -> dict[str, int]:
    return {str(bucket): count for bucket, count in buckets.items()}


def _expected(ask: Ask) -> dict[str, Any]:
    if ask.expected is None:
        return {}
    return {"earliest": ask.expected.earliest_ms, "latest": ask.expected.latest_ms}


def _keys(account_id: int, action: str) -> list[str]:
    if action not in ACTIONS:
        raise ValueError(f"There is no action {action!r}.")
    lease = lease_key(account_id)
    prefix = f"{lease.removesuffix('lease')}{action}"
    return [lease, f"{prefix}:log", f"{prefix}:state"]


def _refuse_mistakes(ask: Ask) -> None:
    """Raise ValueError for a request that no waiting could ever grant, or that has no meaning."""
    if ask.want < 1 or ask.cost < 1:
        raise ValueError(f"At least one unit of one message is asked for, not {ask.want} of {ask.cost}.")
    if len(ask.gaps_ms) != ask.want or min(ask.gaps_ms) < 0:
        raise ValueError(f"{ask.want} units need as many gaps, none below 0, not {list(ask.gaps_ms)}.")
    if ask.day.start_ms >= ask.day.end_ms:
        raise ValueError(f"A day has to end after it starts: {ask.day}.")
    for limit in ("per_minute", "per_hour", "per_day", *LONG_SPANS):
        cap: int = getattr(ask.pace, limit)
        if 0 < cap < ask.cost:
            raise ValueError(f"{ask.cost} messages at once never fit the limit {limit} of {cap}.")
