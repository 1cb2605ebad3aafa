"""The shapes of queues and their items."""

from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from api.schemas.base import MOST_PER_CALL, Asked, Id, ListAsked, Moment, Shown

ItemStateWord = Literal[
    "waiting", "planned", "sending", "sent", "returned", "failed", "in_doubt", "skipped", "withdrawn"
]
TookWord = Literal["added", "changed", "unchanged", "begun", "withdrawn", "refused"]
QueueVerb = Literal["pause", "resume", "cancel", "ask-approval"]
Pace = Literal["planned", "steady"]
OwnId = Annotated[str, Field(min_length=1, max_length=200)]
LongText = Annotated[str, Field(max_length=65_536)]
Ids = Annotated[list[Id], Field(max_length=MOST_PER_CALL)]


class QueuesAsked(ListAsked):
    """The queues that a program wants."""

    archived: bool = False


class ItemsAsked(ListAsked):
    """The items that a program wants."""

    state: ItemStateWord | None = None
    own_id: Annotated[str, Field(max_length=200)] = ""


class QueueShown(Shown):
    """A queue and its numbers."""

    id: int
    owner: int
    name: str
    channel: str
    pace: Pace
    accounts: list[int]
    zone: str
    window_start_hour: int
    window_end_hour: int
    paused_at: datetime | None
    archived_at: datetime | None
    to_send: int = Field(description="Items that wait, are planned, or are being sent.")


class ItemGiven(Asked):
    """One item. An own id that is known changes its item, unless that has begun."""

    own_id: OwnId
    address: Annotated[str, Field(max_length=255)] = ""
    recipient: Id | None = None
    name: Annotated[str, Field(max_length=200)] = ""
    subject: LongText = ""
    text: LongText = ""
    values: Annotated[dict[str, str], Field(max_length=100)] = {}
    media: Annotated[list[Id], Field(max_length=5)] = []
    planned_at: Moment | None = None
    sender: Annotated[str, Field(max_length=200, description="An account's id, name or address.")] = ""
    priority: Annotated[int, Field(ge=-1, le=1)] = 0


class ItemsGiven(Asked):
    """Items to add or change."""

    items: Annotated[list[ItemGiven], Field(min_length=1, max_length=MOST_PER_CALL)]


class ItemTaken(Shown):
    """The result of one item that was given."""

    own_id: str
    result: TookWord
    item: int | None
    why: str = Field(description="Why it was not taken; empty if it was.")


class ItemsTaken(Shown):
    """The results, in the order of the items."""

    results: list[ItemTaken]


class ItemsChosen(Asked):
    """Items by their ids, or by the own ids that programs gave them; at least one."""

    items: Ids = []
    own_ids: Annotated[list[OwnId], Field(max_length=MOST_PER_CALL)] = []

    @model_validator(mode="after")
    def _at_least_one(self) -> Self:
        if not self.items and not self.own_ids:
            raise ValueError("name at least one item, in items or in own_ids")
        return self


class ItemsPlanned(ItemsChosen):
    """Items to plan again: for a time, or without one."""

    planned_at: Moment | None = None


class ItemsDone(Shown):
    """How many items were changed, and how many had begun or ended before."""

    done: int
    begun: int


class ItemShown(Shown):
    """An item and how it goes."""

    id: int
    own_id: str
    source: str
    recipient: int
    address: str
    account: int
    state: ItemStateWord
    planned_at: datetime | None = Field(description="The time that was asked for.")
    planned_for: datetime | None = Field(description="The earliest time now; null once it is sent or ended.")
    sent_at: datetime | None
    why: str = Field(description="The error, or why it is sent later than planned.")
    run: int
    target: int


class ItemWhole(ItemShown):
    """An item with what it says; without a text of its own it says that of its queue."""

    subject: str
    text: str
    media: list[str] = Field(description="The names of its files.")
    values: dict[str, str]
    priority: int
    moved_why: str = Field(description="Why it is sent later than planned; empty if it is not.")
    replied_at: datetime | None
    reply: str


class Confirmed(Asked):
    """Canceling gives items up: it has to be confirmed."""

    confirmed: bool = False
