"""What the limiter is told after it forgot: the ledger's memory of an account (SPEC P8)."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from math import ceil

from accounts.models import Account
from activity import ledger
from delivery.limiter import Day, Memory
from delivery.models import RunTarget
from delivery.pacing import Pace, batch_position
from delivery.states import TargetStatus


def memory(
    account: Account,
    action: str,
    *,
    pace: Pace,
    day: Day,
    reach_ms: int,
    gap_ms: int,
    in_hand: Mapping[str, int],
    in_the_air: int,
) -> Memory:
    """All that counts against the account's limits now.

    `in_hand` are the permits that the asking pump holds, and `in_the_air` how many of them have been used. What
    another pump had begun when it died is in no ledger row yet: it counts as arriving now.
    """
    now = datetime.now(UTC)
    doubtful = RunTarget.objects.filter(account=account, status=TargetStatus.SENDING, begun_at__isnull=False)
    under_way = [_ms(at) for at in doubtful.values_list("begun_at", flat=True) if at is not None]
    doubts = max(0, len(under_way) - in_the_air)
    begun = [_ms(at) for at in ledger.latest_times(account.pk, action, most=max(1, pace.batch_size))]
    batch = batch_position(begun, batch_size=pace.batch_size, batch_pause_ms=pace.batch_pause_ms)
    seen = ledger.seen_times(account.pk, action, since=now - timedelta(milliseconds=reach_ms))
    day_used = ledger.count_since(account.pk, action, since=datetime.fromtimestamp(day.start_ms / 1000, UTC))
    last = begun[-1] if begun else 0
    return Memory(
        day=day,
        day_used=day_used + doubts + len(in_hand),
        reach_ms=reach_ms,
        times_ms=[_ms(at) for at in seen] + [_ms(now)] * doubts,
        in_flight=in_hand,
        batch=min(pace.batch_size, batch + doubts + len(in_hand)),
        last_ms=last,
        free_at_ms=max([last, *under_way, *in_hand.values()]) + gap_ms,
        held_until_ms=_ms(account.held_until) if account.held_until else 0,
    )


def _ms(at: datetime) -> int:
    return ceil(at.timestamp() * 1000)
