"""The base of all shapes: strict input, plain output, ids, texts and pages."""

from datetime import UTC, datetime
from typing import Annotated, Generic, TypeVar

from ninja import Schema
from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field

T = TypeVar("T")

Id = Annotated[int, Field(ge=1, lt=2**63)]
MOST_PER_CALL = 1_000


def _storable_time(value: datetime) -> datetime:
    """Return the moment in UTC; refuse one that is so far off that a zone may not be able to write it."""
    try:
        found = value.astimezone(UTC)
    except OverflowError as error:
        raise ValueError("the time is out of range") from error
    if not 1970 <= found.year <= 9000:
        raise ValueError("use a time between the years 1970 and 9000")
    return found


Moment = Annotated[AwareDatetime, AfterValidator(_storable_time)]


class Asked(Schema):
    """Values of a request. An unknown field is refused: it would be a mistake that nobody notices."""

    model_config = ConfigDict(extra="forbid", strict=False)


class Shown(BaseModel):
    """Values of an answer. Times are in UTC; the name of a zone stands in a field of its own."""

    model_config = ConfigDict(frozen=True)


class ListAsked(Asked):
    """The parameters that every list understands."""

    cursor: Annotated[str, Field(max_length=500, description="next_cursor of the page before.")] = ""
    limit: Annotated[int, Field(ge=1, le=200, description="Rows per page.")] = 50


class Page(Shown, Generic[T]):
    """One page of a list, and the cursor of the next one; null on the last page."""

    items: list[T]
    next_cursor: str | None


class Leaving(Shown):
    """When something leaves, and why not sooner."""

    leaves_at: datetime | None = Field(
        description="When the next message is expected to leave; null if nothing will leave without a person."
    )
    waiting_for: str = Field(description="The reason to wait, as a stable word; empty while messages leave.")
    sentence: str = Field(description="The same for people.")


class Done(Shown):
    """An action that has nothing else to show."""

    done: bool = True
