"""Runs as an account sends them, and their messages on the way out."""

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from math import ceil
from uuid import UUID

import structlog

from activity.storable import storable
from delivery.engine.claims import Claimed
from delivery.engine.clock_reading import database_clock
from delivery.engine.last_look import LastLook
from delivery.engine.loop import Landed, SendRequest
from delivery.engine.permits import Permits
from delivery.engine.recording import Begun, Intent, Landing, Ledgered
from delivery.engine.shift.typing import seconds_of_typing
from delivery.limiter import Unit
from delivery.models import Run, target_key
from delivery.outcomes import NEVER_LEFT, Outcome, Rejected, Sent, name_of
from delivery.parts import FrozenPart, MessageBuilder, MissingVariableError
from delivery.retry import Verdict
from delivery.states import TargetStatus
from delivery.transports.base import Message

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedRun:
    """A run as this account sends it."""

    run_id: int
    key: UUID
    whose: Ledgered
    parts: tuple[FrozenPart, ...]
    builder: MessageBuilder
    drip: Run | None = None  # the run itself, where its targets have planned times
    own_contents: bool = False  # each target has a content of its own
    handles: dict[str, str] = field(default_factory=dict)  # of files of its targets, by their content


@dataclass(order=True, slots=True, kw_only=True)
class Outgoing:
    """One message on the agenda or in flight."""

    at: float  # monotonic
    target: Claimed = field(compare=False)
    run: ServedRun = field(compare=False)
    part: int = field(compare=False)
    permits: list[str] = field(compare=False)  # one per part that is still to come, this one first
    planned_ms: int = field(compare=False)
    new_person: int = field(compare=False, default=0)  # what its next message uses up, `newness.LEVEL`
    met: datetime | None = field(compare=False, default=None)  # when the week counted the person last
    right: str = field(compare=False, default="")  # to write to a new person, where these have a limit
    gap: float = field(compare=False, default=0.0)  # seconds that the next target waits at least
    unchecked: bool = field(compare=False, default=False)  # its number has yet to be checked
    refused: Outcome | None = field(
        compare=False, default=None
    )  # its number does not exist, or its file has no handle
    typing: float = field(compare=False, default=0.0)  # seconds before it, in which typing is shown
    look: LastLook | None = field(compare=False, default=None)  # once it has begun

    @property
    def held(self) -> list[str]:
        """Return its permits, and its right."""
        return [*self.permits, self.right] if self.right else self.permits

    @property
    def target_id(self) -> int:
        return self.target.target_id

    @property
    def key(self) -> str:
        """Return the name of this message for its service; it is the same for every attempt."""
        return f"{self.target_key}-{self.part}"

    @property
    def target_key(self) -> str:
        """Return the name of the target, which draws the wording of each part."""
        return target_key(self.run.key, self.target_id)

    @property
    def begun(self) -> Begun:
        """Return the leave with which the message left: the last one, if it was asked for again."""
        if self.look is None:
            raise ValueError("This message has not begun.")
        return self.look.leave.begun

    def intent(self, *, fence: int) -> Intent:
        """Return the intent to send the next part; the leave for the part before is used up."""
        self.look = None
        now = datetime.now(UTC)
        ahead = timedelta(seconds=max(0.0, self.at - time.monotonic()))
        return Intent(
            target_id=self.target_id,
            part=self.part,
            fence=fence,
            wished_at=now,
            leaves_at=now + ahead,
            address=self.target.address,
            account_id=self.run.whose.account_id,
            claimed_at=self.target.claimed_at if self.run.own_contents else None,
        )

    @property
    def parts(self) -> tuple[FrozenPart, ...]:
        """Return the parts of its target: those of the run, or its own."""
        own = self.target.content
        return self.run.parts if own is None or own.parts is None else own.parts

    def request(self) -> SendRequest | Outcome:
        """Return the message for the network, or why it does not leave: every message that begins also lands."""
        if self.refused is not None:
            return self.refused
        if self.run.own_contents and self.target.content is None:
            return Rejected(reason="the text of this item is gone")
        try:
            return SendRequest(tag=self.target_id, message=self.message(), key=self.key, look=self.look)
        except MissingVariableError as error:
            return Rejected(reason=str(error))
        except Exception:
            log.exception("not_written", target=self.target_id)
            return Rejected(reason="internal error while the message was written")

    def message(self) -> Message:
        """Return the message rendered for its recipient; raise MissingVariableError where a value is missing."""
        part, target = self.parts[self.part], self.target
        own = target.content
        return self.run.builder.message(
            part,
            address=target.address,
            values=target.values,
            key=self.target_key,
            number=self.part,
            target_id=target.target_id,
            subject=None if own is None or (own.parts is None and not own.subject) else own.subject,
        )


def first_outgoing(
    run: ServedRun,
    unit: Unit,
    target: Claimed,
    permits: Permits,
    *,
    gap: float,
    checks_numbers: bool,
    shows_typing: bool,
    right: str = "",
) -> Outgoing:
    """Return a target's first message for the agenda; give back the permits for parts that the target has already."""
    left = len(run.parts) - target.parts_done
    permits.give_back(unit.permits[left:])
    outgoing = Outgoing(
        at=permits.moment(unit),
        target=target,
        run=run,
        part=target.parts_done,
        permits=list(unit.permits[:left]),
        planned_ms=unit.at_ms,
        new_person=target.new_person,
        met=target.met,
        right=right,
        gap=gap,
        unchecked=checks_numbers and target.stranger and target.address.startswith("+"),
    )
    if shows_typing:
        outgoing.typing = seconds_of_typing(len(outgoing.parts[outgoing.part].text), gap)
    return outgoing


def landing_of(outgoing: Outgoing, landed: Landed, verdict: Verdict, *, fence: int) -> Landing:
    """Return the ledger's row for a message, and the new state of its target."""
    sent = isinstance(landed.outcome, Sent)
    parts_done = outgoing.part + 1 if sent else outgoing.part
    more = sent and parts_done < len(outgoing.run.parts)
    # Without a wait of its own the target keeps its place: else an account that is away would ask for every one of its
    # targets in turn.
    wait = verdict.retry_after if verdict.target is TargetStatus.PENDING else None
    now = datetime.now(UTC)
    return Landing(
        whose=outgoing.run.whose,
        fence=fence,
        target_id=outgoing.target.target_id,
        part=outgoing.part,
        new_person=0 if isinstance(landed.outcome, NEVER_LEFT) else outgoing.new_person,
        variant=outgoing.parts[outgoing.part].variant(key=outgoing.target_key),
        attempt=outgoing.begun.attempt,
        began_at=outgoing.begun.at,
        # Until the answer, not only on the network: the ledger's upper bound of when it was received.
        took_ms=max(landed.took_ms, ceil((now - outgoing.begun.at).total_seconds() * 1000)),
        outcome=name_of(landed.outcome),
        provider_id=storable(getattr(landed.outcome, "provider_id", ""), 255),
        error=storable(verdict.error, 500),
        status=TargetStatus.SENDING if more else verdict.target,
        parts_done=parts_done,
        # By the database's clock: that of this process may be off, and nobody would shorten the wait later.
        not_before=database_clock.now() + timedelta(seconds=wait) if wait else None,
        counts=verdict.counts,
    )
