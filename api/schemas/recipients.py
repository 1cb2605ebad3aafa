"""The shapes of recipients and tags."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from accounts.imports.rows import LONGEST_NAME, LONGEST_TAG, LONGEST_VALUE
from accounts.models.account import Channel
from api.schemas.base import MOST_PER_CALL, Asked, Id, ListAsked, Shown

MOST_FIELDS, MOST_TAGS = 50, 50
RecipientKind = Literal["group", "person", "mailbox", "room", "profile"]
State = Literal[
    "opted_out",
    "blocked",
    "undeliverable",
    "cooling_down",
    "not_interested",
    "converted",
    "reachable",
    "archived",
]


def _tag(name: str) -> str:
    name = " ".join(name.split())
    if not name or len(name) > LONGEST_TAG or set(name) & set(",;|"):
        raise ValueError(f"a tag has 1 to {LONGEST_TAG} characters, without commas, semicolons and bars (|)")
    return name


Name = Annotated[str, Field(max_length=LONGEST_NAME)]
TagName = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_tag)]
Variable = Annotated[str, Field(pattern=r"^\w{1,40}$")]
Value = Annotated[str, Field(max_length=LONGEST_VALUE)]
Fields = Annotated[dict[Variable, Value], Field(max_length=MOST_FIELDS)]


class RecipientsAsked(ListAsked):
    """The filters of the list of recipients."""

    q: Annotated[str, Field(max_length=500, description="Beginnings of words of name or address.")] = ""
    tag: Id | None = None
    state: State | None = Field(
        default=None, description="Archived recipients are listed only by `archived`."
    )
    channel: Channel | None = None
    account: Id | None = None


class RecipientShown(Shown):
    """One address that an account can reach."""

    id: int
    owner: int
    channel: Channel
    kind: RecipientKind
    address: str
    name: str
    fields: dict[str, Any]
    tags: list[str]
    account: int | None
    state: State
    opted_out_at: datetime | None
    blocked_at: datetime | None
    undeliverable_at: datetime | None
    undeliverable_for: str = Field(description="Why nothing arrives at the address, as its service says.")
    converted_at: datetime | None
    cooldown_until: datetime | None
    last_inbound_at: datetime | None
    created_at: datetime
    archived_at: datetime | None


class RecipientGiven(Asked):
    """A recipient to add, or to update where the address exists. What is left out stays as it is."""

    channel: Channel
    address: Annotated[str, Field(min_length=1, max_length=255)]
    name: Name | None = None
    fields: Fields | None = Field(default=None, description="Variables; merged with those that exist.")
    tags: Annotated[list[TagName], Field(max_length=MOST_TAGS)] = Field(
        default=[], description="Names of tags to add; new ones are made."
    )
    account: Id | None = Field(default=None, description="The only account that reaches it, as with a group.")


class RecipientsGiven(Asked):
    """Recipients in bulk. Each is saved whole or not at all, and has a result of its own."""

    recipients: Annotated[list[RecipientGiven], Field(min_length=1, max_length=MOST_PER_CALL)]
    owner: Id | None = Field(
        default=None, description="For whom they are added; the key's person by default."
    )


class RecipientResult(Shown):
    """The result for one of the given recipients."""

    index: int
    result: Literal["added", "updated", "refused"]
    id: int | None = None
    address: str = Field(default="", description="In its canonical form.")
    detail: str = Field(default="", description="Why it was refused and what to do.")


class RecipientResults(Shown):
    """The results in the order of the request."""

    results: list[RecipientResult]
    added: int
    updated: int
    refused: int


class RecipientChanged(Asked):
    """Changes of one recipient. `fields` replaces all of them; use the bulk call to merge."""

    name: Name | None = None
    fields: Fields | None = None
    tags: Annotated[list[TagName], Field(max_length=MOST_TAGS)] | None = Field(
        default=None, description="All tags that it has from now on."
    )


class Reason(Asked):
    """Why consent changes, as it is written into the recipient's history."""

    how: Annotated[str, Field(min_length=1, max_length=200, pattern=r"\S")]


class TagShown(Shown):
    """A named list of recipients."""

    id: int
    owner: int
    name: str


class TagGiven(Asked):
    """A tag's name."""

    name: TagName
    owner: Id | None = None


class TagRenamed(Asked):
    name: TagName


class Tagged(Asked):
    """Recipients that get or lose a tag."""

    add: Annotated[list[Id], Field(max_length=MOST_PER_CALL)] = []
    remove: Annotated[list[Id], Field(max_length=MOST_PER_CALL)] = []


class TaggedCount(Shown):
    """How many recipients changed."""

    added: int
    removed: int


class Erasure(Asked):
    """The confirmation that everything about a person is erased."""

    confirmed: Literal[True] = Field(description="It cannot be undone.")


class Erased(Shown):
    """How many rows of each kind were deleted or emptied."""

    id: int
    erased: dict[str, int]


class PersonData(Shown):
    """Everything about one person, in sections."""

    data: dict[str, Any]
