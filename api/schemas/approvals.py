"""The shapes of approvals."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from api.schemas.base import Asked, Id, ListAsked, Shown

ApprovalState = Literal["waiting", "approved", "refused", "withdrawn", "expired"]
ApprovalKind = Literal["reminder", "send", "hand_over", "queue", "loosen"]
Content = Annotated[str, Field(min_length=1, max_length=64)]


class ApprovalsAsked(ListAsked):
    """The filters of the approvals, the newest first."""

    state: ApprovalState | None = None
    owner: Id | None = None


class ApprovalShown(Shown):
    """One request that a second person approves something before it leaves."""

    id: int
    owner: int
    kind: ApprovalKind
    state: ApprovalState
    title: str
    why: str = Field(description="Why a second person is needed.")
    reminder: int | None
    run: int | None = Field(description="The run that is handed over, or that the approval made.")
    account: int | None = Field(description="The account that would send without approval again.")
    recipients: int
    covers: int = Field(
        description="The most recipients that the approval is for; more are asked about again."
    )
    content: str = Field(description="The fingerprint of what is approved: send it with your decision.")
    asked_by: str
    asked_at: datetime
    expires_at: datetime | None
    decided_by: str
    decided_at: datetime | None
    reason: str
    may_decide: bool = Field(description="Whether the person of this key may decide.")


class ApproveGiven(Asked):
    """The approval of what you looked at."""

    content: Content = Field(
        description="From the request. If it is about something else by now, nothing is done."
    )


class RefuseGiven(ApproveGiven):
    """The refusal of what you looked at, with the reason."""

    reason: Annotated[str, Field(min_length=1, max_length=300)]
