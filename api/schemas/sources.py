"""The shapes of sources: tables at other services whose rows are items."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from api.schemas.base import Asked, Shown

SourceKind = Literal["notion", "sheet"]
SourceState = Literal["reading", "new", "off", "stopped", "failing"]
ReadOutcome = Literal["reading", "done", "failed"]


class SourceShown(Shown):
    """A source and how it does. Its secret is never shown."""

    id: int
    owner: int
    queue: int
    kind: SourceKind
    title: str
    address: str
    state: SourceState = Field(
        description="reading: on its clock; new: its columns are not chosen yet; off: switched off; "
        "stopped: a person has to do something; failing: its service is asked again by itself."
    )
    why: str = Field(description="Why it stopped or fails; empty otherwise.")
    every_minutes: int
    next_read_at: datetime | None
    retry_at: datetime | None = Field(description="Its service is not asked before.")
    missing: int = Field(
        description="Rows that are gone all at once, whose messages wait for a person to withdraw them."
    )
    own_id_source: str = Field(description="The `source` that its items have.")


class ReadShown(Shown):
    """One reading of a whole table."""

    id: int
    started_at: datetime
    ended_at: datetime | None
    outcome: ReadOutcome
    counts: dict[str, int]
    why: str


class WrongRowShown(Shown):
    """A row that was not taken, or that its service did not let us write."""

    id: int
    own_id: str
    place: str = Field(description="The page, or the number of the row.")
    problem: str
    unwritten: str = Field(description="Why its service did not take what was written.")
    item: int | None


class MissingConfirmed(Asked):
    """Withdrawing gives messages up: it has to be confirmed."""

    confirmed: bool = False


class MissingWithdrawn(Shown):
    """How many messages were withdrawn."""

    done: int
