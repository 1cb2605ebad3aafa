"""What a pump holds in its hands: runs as its account sends them, and messages on their way."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from math import ceil
from uuid import UUID

from delivery.claims import Claimed
from delivery.models import Run, target_key
from delivery.outcomes import Sent, name_of
from delivery.parts import FrozenPart, Letter
from delivery.records import Intent, Landing, Ledgered
from delivery.retry import Effect, Verdict
from delivery.states import TargetStatus
from delivery.storable import storable
from delivery.transports.base import Message
from delivery.wire import Landed, Parcel


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A run as this account sends it."""

    run_id: int
    key: UUID
    whose: Ledgered
    parts: tuple[FrozenPart, ...]
    letter: Letter
    drip: Run | None = None  # the run itself, where its targets have planned times


@dataclass(order=True, slots=True, kw_only=True)
class Slot:
    """One message on the agenda or in the air."""

    at: float  # monotonic
    target: Claimed = field(compare=False)
    run: Served = field(compare=False)
    part: int = field(compare=False)
    permits: list[str] = field(compare=False)  # one per part that is still to come, this one first
    planned_ms: int = field(compare=False)
    gap: float = field(compare=False, default=0.0)  # seconds that the next target waits at least
    attempt: int = field(compare=False, default=0)
    began_at: datetime = field(compare=False, default=datetime.min)  # noqa: DTZ901 - until it begins

    @property
    def target_id(self) -> int:
        return self.target.target_id

    @property
    def key(self) -> str:
        """Names this message to its service, the same over every attempt."""
        return f"{target_key(self.run.key, self.target_id)}-{self.part}"

    def intent(self, *, fence: int) -> Intent:
        return Intent(target_id=self.target_id, part=self.part, fence=fence, wished_at=datetime.now(UTC))

    def parcel(self) -> Parcel:
        """The message for the wire; raises MissingVariableError."""
        stranger = self.target.stranger and self.part == 0
        return Parcel(tag=self.target_id, message=self.message(), key=self.key, stranger=stranger)

    def message(self) -> Message:
        """Rendered for its recipient; raises MissingVariableError."""
        part = self.run.parts[self.part]
        return self.run.letter.message(part, address=self.target.address, values=self.target.values)


def landing_of(slot: Slot, landed: Landed, verdict: Verdict, *, fence: int) -> Landing:
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
        whose=slot.run.whose,
        fence=fence,
        target_id=slot.target.target_id,
        part=slot.part,
        attempt=slot.attempt,
        began_at=slot.began_at,
        # From the intent to the answer, not only on the wire: the ledger's upper bound of when it was received.
        took_ms=max(landed.took_ms, ceil((now - slot.began_at).total_seconds() * 1000)),
        outcome=name_of(landed.outcome),
        provider_id=storable(getattr(landed.outcome, "provider_id", ""), 255),
        error=storable(verdict.error, 500),
        status=TargetStatus.SENDING if more else verdict.target,
        parts_done=parts_done,
        not_before=now + timedelta(seconds=wait) if wait else None,
    )
