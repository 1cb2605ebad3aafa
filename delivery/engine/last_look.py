"""The last look before a message leaves: window, pause, cancel, opt-out, lease and clock (SPEC W3, R5).

BEGIN gives leave to send (`recording.py`). Afterwards this process, the database or the connection may be slow. So the
transport asks once more when it is connected. The usual answer costs nothing: the leave is less than a second old and
its window stays open. Leave that is older is asked for again, by the same shared statement.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum, auto

import psycopg
from django.conf import settings

from delivery import conf
from delivery.engine.batching import Batches
from delivery.engine.recording import Begun, Intent
from delivery.transports.leaving import HeldBackError

FRESH = 1.0  # seconds for which leave to send counts without another look


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A moment on both clocks of this machine: one stops while it is suspended, the other can be set."""

    monotonic: float
    wall: float

    @classmethod
    def now(cls) -> "Moment":
        return cls(monotonic=time.monotonic(), wall=time.time())

    def ago(self) -> float:
        """Return the seconds since this moment, by the clock that counted more of them."""
        return max(time.monotonic() - self.monotonic, time.time() - self.wall)


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave:
    """Leave to send one message, and when it was asked for: its answer may have been under way for long."""

    begun: Begun
    asked: Moment

    def clocks_differ_by(self, tolerance: timedelta, *, ago: timedelta) -> bool:
        """Decide whether this process' clock and the database's were further apart: the ledger's times would be wrong.

        It was asked so long `ago`. It read its clock some time after this process did, at the latest when it answered.
        """
        behind = self.begun.clock - self.begun.written
        return not -tolerance <= behind <= tolerance + ago

    def closes_within(self, guard: timedelta, *, ago: timedelta) -> bool:
        """Decide whether the window closes before a message that leaves now has arrived, by either clock."""
        return self.begun.closes_at <= max(self.begun.clock + ago, datetime.now(UTC)) + guard


async def ask(batches: Batches, intents: Sequence[Intent], *, patience: float = 0.0) -> list[Leave | None]:
    """Ask for leave to send; return the answer to each intent in its place.

    For up to `patience` seconds the question waits for those of other accounts, and shares a statement with them.
    """
    asked = Moment.now()
    begun = await batches.begin(intents, patience=patience)
    return [None if each is None else Leave(begun=each, asked=asked) for each in begun]


class Stage(Enum):
    """The progress of the last look at one message."""

    AHEAD = auto()
    LOOKING = auto()  # or it was refused
    PASSED = auto()  # the message may have left from now on
    GIVEN_UP = auto()  # nobody waits for the message any more: it must not leave


class Look(ABC):
    """The last look at one message. The transport calls it before each request; it raises HeldBackError."""

    def __init__(self) -> None:
        self.stage = Stage.AHEAD
        self.refusal = "the database took too long to give leave"  # unless a look found something else

    @property
    def fresh(self) -> bool:
        """Return whether leave was given just now, so that the look before the request is enough."""
        return False

    async def __call__(self) -> None:
        if self.stage is not Stage.GIVEN_UP:
            self.stage = Stage.LOOKING
            try:
                await self.check()
            except HeldBackError as error:
                self.refusal = str(error)
                raise
        # Given up before, or while the database was asked.
        if self.stage is Stage.GIVEN_UP:
            raise HeldBackError("it was given up before it could leave")
        self.stage = Stage.PASSED

    @abstractmethod
    async def check(self) -> None:
        """Raise HeldBackError unless the message may leave now."""

    def give_up(self) -> bool:
        """Keep the message back from now on, if it has not left; return whether its look was under way or refused."""
        looking = self.stage is Stage.LOOKING
        if self.stage is not Stage.PASSED:
            self.stage = Stage.GIVEN_UP
        return looking


class LastLook(Look):
    """The last look at a message of a run."""

    def __init__(
        self,
        intent: Intent,
        leave: Leave,
        *,
        batches: Batches,
        lost: Callable[[], bool],
    ) -> None:
        super().__init__()
        self._intent = intent
        self._batches = batches
        self._lost = lost  # whether the pump's lease is gone
        self._tolerance, self._guard = conf.clock_tolerance(), conf.window_guard()
        self.leave = leave

    @property
    def fresh(self) -> bool:
        return self.leave.asked.ago() <= FRESH

    async def check(self) -> None:
        """Raise HeldBackError unless the message may leave now. Asks the database only if the leave is old."""
        ago = self._check_here()
        if ago > FRESH:
            self.leave = await self._asked_again()
            # A database that is slow for everybody may take longer than FRESH, and still counts.
            if self._check_here() > max(FRESH, settings.LEASE_SECONDS / 3):
                raise HeldBackError("the database took too long to give leave")

    def _check_here(self) -> float:
        """Check what is known without a question; return how many seconds ago leave was asked for."""
        seconds = self.leave.asked.ago()
        ago = timedelta(seconds=seconds)
        if self._lost():
            raise HeldBackError("another pump serves its account")
        if self.leave.clocks_differ_by(self._tolerance, ago=ago):
            raise HeldBackError("the clocks of this worker and of the database differ")
        if self.leave.closes_within(self._guard, ago=ago):
            raise HeldBackError("its window closes")
        return seconds

    async def _asked_again(self) -> Leave:
        try:
            [leave] = await ask(self._batches, [self._intent])
        except psycopg.Error as error:
            raise HeldBackError("the database does not answer") from error
        if leave is None:
            raise HeldBackError("it may not be sent any more")
        return leave
