"""The shapes of accounts and their limits."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field, create_model

from accounts.models import Limit
from accounts.models.account import Action, Channel
from api.schemas.base import Asked, Id, ListAsked, Shown
from delivery.limits.lookup import FIELDS
from delivery.states import AccountStatus


class AccountsAsked(ListAsked):
    """The filters of the list of accounts."""

    status: AccountStatus | None = None
    channel: Channel | None = None
    owner: Id | None = None
    archived: bool = False


class AccountShown(Shown):
    """An account, and in one sentence whether it sends now."""

    id: int
    owner: int
    name: str
    channel: Channel
    transport: str
    profile: str
    zone: str
    status: AccountStatus
    status_reason: str
    waiting_for: str = Field(
        description="Why it does not send, as a stable word; empty while it sends or is ready."
    )
    waiting_until: datetime | None
    sentence: str
    created_at: datetime
    archived_at: datetime | None


class Use(Shown):
    """How much of one limit is used."""

    action: Action
    span: Literal["minute", "hour", "day"]
    used: int
    limit: int | None


class LimitShown(Shown):
    """One limit that holds now, and where it comes from."""

    value: float
    source: Literal["account", "profile", "settings", "warm_up", "ceiling", "service"]


class ActionLimits(Shown):
    """The limits of an account for one action: those that hold, and the account's own ones."""

    action: Action
    holds: dict[str, LimitShown]
    own: dict[str, float]


class WorkingHours(Asked):
    """The account's own hours, in its zone: nothing is sent outside them. Both hours, or neither for any hour."""

    start_hour: Annotated[int, Field(ge=0, le=23)] | None = None
    end_hour: Annotated[int, Field(ge=1, le=24)] | None = None
    days: list[Annotated[int, Field(ge=0, le=6)]] = Field(
        default=[0, 1, 2, 3, 4, 5, 6],
        min_length=1,
        max_length=7,
        description="Days of the week; 0 is Monday.",
    )


class WorkingHoursShown(Shown):
    """The account's own hours."""

    start_hour: int | None
    end_hour: int | None
    days: list[int]


class AccountDetail(AccountShown):
    """An account with its working hours, its limits and their use."""

    working_hours: WorkingHoursShown

    use: list[Use]
    limits: list[ActionLimits]


def _value(name: str) -> Any:
    whole = Limit._meta.get_field(name).get_internal_type() != "FloatField"
    number: Any = (
        Annotated[int, Field(ge=1, le=10_000_000)] if whole else Annotated[float, Field(ge=0, le=86_400)]
    )
    return (number | None, Field(default=None, description=f"{name}; null leaves it to the profile."))


# Made from the limits that exist, so that a new limit is here at once.
LimitValues = create_model("LimitValues", __base__=Asked, **{name: _value(name) for name in FIELDS})
