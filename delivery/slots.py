"""What a pump holds in its hands: runs as its account sends them, and messages on their way."""

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from math import ceil
from queue import Empty, SimpleQueue
from uuid import UUID

from delivery.claims import Claimed, Landing, Ledgered
from delivery.models import target_key
from delivery.outcomes import Sent, name_of
from delivery.parts import FrozenPart, Letter
from delivery.retry import Effect, Verdict
from delivery.states import TargetStatus
from delivery.transports.base import Message
from delivery.wire import Landed

CROWD = 8  # messages in the air from which on results are recorded together
LINGER = 0.02  # seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A run as this account sends it."""

    run_id: int
    key: UUID
    whose: Ledgered
    parts: tuple[FrozenPart, ...]
    letter: Letter


@dataclass(order=True, slots=True, kw_only=True)
class Slot:
    """One message on the agenda or in the air."""

    at: float  # monotonic
    target: Claimed = field(compare=False)
    run: Served = field(compare=False)
    part: int = field(compare=False)
    permits: list[str] = field(compare=False)  # one per part that is still to come, this one first
    planned_ms: int = field(compare=False)
    attempt: int = field(compare=False, default=0)
    began_at: datetime = field(compare=False, default=datetime.min)  # noqa: DTZ901 - until it begins

    @property
    def target_id(self) -> int:
        return self.target.target_id

    @property
    def key(self) -> str:
        """Names this message to its service, the same over every attempt."""
        return f"{target_key(self.run.key, self.target_id)}-{self.part}"

    def message(self) -> Message:
        """Rendered for its recipient; raises MissingVariableError."""
        part = self.run.parts[self.part]
        return self.run.letter.message(part, address=self.target.address, values=self.target.values)


def all_within(landed: "SimpleQueue[Landed]", timeout: float, *, in_the_air: int) -> list[Landed]:
    """The next result, if one comes in time, and all others that are there by then.

    Where many are in the air, half of them are waited for, very briefly: they share one statement, and their
    places are taken by as many.
    """
    results: list[Landed] = []
    crowd = in_the_air // 2 if in_the_air >= CROWD else 0
    try:
        results.append(landed.get(timeout=timeout))
        until = time.monotonic() + LINGER
        while len(results) < crowd:
            results.append(landed.get(timeout=max(0.0, until - time.monotonic())))
        while True:
            results.append(landed.get_nowait())
    except Empty:
        return results


def landing_of(slot: Slot, landed: Landed, verdict: Verdict) -> Landing:
    """The ledger's row for a message, and what its target becomes."""
    sent = isinstance(landed.outcome, Sent)
    parts_done = slot.part + 1 if sent else slot.part
    more = sent and parts_done < len(slot.run.parts)
    # While its account is held, the target keeps its place: else an account that is away would ask for every one of
    # its targets in turn before it is known to be offline.
    waits = verdict.target is TargetStatus.PENDING and verdict.effect is not Effect.HOLD
    wait = verdict.retry_after if waits else None
    now = datetime.now(UTC)
    return Landing(
        target_id=slot.target.target_id,
        part=slot.part,
        attempt=slot.attempt,
        began_at=slot.began_at,
        # From the intent to the answer, not only on the wire: the ledger's upper bound of when it was received.
        took_ms=max(landed.took_ms, ceil((now - slot.began_at).total_seconds() * 1000)),
        outcome=name_of(landed.outcome),
        provider_id=getattr(landed.outcome, "provider_id", "")[:255],
        error=verdict.error[:500],
        status=TargetStatus.SENDING if more else verdict.target,
        parts_done=parts_done,
        not_before=now + timedelta(seconds=wait) if wait else None,
    )
