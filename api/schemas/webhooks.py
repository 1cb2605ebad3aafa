"""The shapes of webhooks out."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from accounts.models.webhook import EventType
from api.schemas.base import Asked, Id, ListAsked, Shown

Address = Annotated[str, Field(min_length=1, max_length=500)]
Events = Annotated[list[EventType], Field(min_length=1, max_length=20)]
DeliveryState = Literal["pending", "delivered", "given_up"]


class WebhookGiven(Asked):
    """An address that gets events."""

    url: Address
    events: Events
    owner: Id | None = None


class WebhookChanged(Asked):
    """Changes of a webhook. A field that is left out stays as it is."""

    url: Address | None = None
    events: Events | None = None


class WebhookShown(Shown):
    """A webhook and how it goes."""

    id: int
    owner: int
    url: str
    events: list[EventType]
    created_at: datetime
    switched_off_at: datetime | None
    switched_off_reason: str
    failing_since: datetime | None
    failures: int = Field(description="In a row.")
    retry_at: datetime | None = Field(description="Nothing is sent before this time.")


class WebhookMade(WebhookShown):
    """A webhook with its secret, which is shown only here."""

    secret: str


class DeliveriesAsked(ListAsked):
    """The filters of the log, the newest first."""

    state: DeliveryState | None = None


class DeliveryShown(Shown):
    """One event, its body and the last answer."""

    id: int
    message: str = Field(description="The id of the event, as in the header webhook-id.")
    type: str
    state: DeliveryState
    attempts: int
    created_at: datetime
    next_try_at: datetime | None
    ended_at: datetime | None
    status: int | None
    answer: str
    payload: Any
