"""The shapes of runs, their targets, attempts and replies."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from accounts.models.account import Action
from api.schemas.base import Asked, Id, Leaving, ListAsked, Moment, Shown
from delivery.states import RunStatus, TargetStatus

RunKind = Literal["reminder", "second", "follow_up", "message", "queue"]
AttemptOutcome = Literal[
    "sent",
    "rate_limited",
    "not_connected",
    "unreachable",
    "server_error",
    "try_again",
    "held_back",
    "rejected",
    "account_blocked",
    "unknown",
]


class RunsAsked(ListAsked):
    """The filters of the list of runs, the newest first."""

    status: RunStatus | None = None
    reminder: Id | None = None
    account: Id | None = None
    kind: RunKind | None = None
    since: Moment | None = Field(default=None, description="Fired at or after this time.")
    until: Moment | None = Field(default=None, description="Fired before this time.")
    archived: bool = False


class RunShown(Leaving):
    """One firing of a reminder, or one message. The counts add up to `total` at every moment."""

    id: int
    owner: int
    reminder: int
    kind: RunKind
    name: str
    action: Action
    status: RunStatus
    canceling: bool = Field(description="It was canceled, and its last messages have no result yet.")
    pause_reason: str
    summary: str
    zone: str
    fired_at: datetime
    due_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    archived_at: datetime | None
    total: int
    pending: int
    sending: int
    sent: int
    returned: int = Field(
        description="Of the sent ones: their service reported later that they failed, bounced or were unwanted."
    )
    failed: int
    skipped: int
    unconfirmed: int
    left_out: int = Field(description="Of the skipped ones: recipients who must not get it.")


class SenderShown(Shown):
    """An account of a run, and its sentence."""

    account: int
    name: str
    sentence: str


class RunDetail(RunShown):
    """A run with its rate, its expected end and the accounts that still send it."""

    rate: float = Field(description="Targets per minute over the last minute.")
    finishes_at: datetime | None
    senders: list[SenderShown]


class Confirmation(Asked):
    """The answer to the question of an action that gives something up."""

    confirmed: bool = False
    typed: Annotated[str, Field(max_length=200)] = Field(
        default="", description="The text of `phrase`, where the question has one."
    )


class HandOver(Asked):
    """Accounts to hand over to. Without `confirmed` nothing moves: the answer shows what would."""

    to: Annotated[list[Id], Field(min_length=1, max_length=100)]
    known: bool = Field(default=False, description="Also people who have talked with the present account.")
    confirmed: bool = False


class CourseShown(Shown):
    """How a run goes on, in a sentence, and whether it ends in its window."""

    fits: bool
    sentence: str


class PreviewShown(Shown):
    """A run before a hand-over: how many targets would move to which account, and both forecasts."""

    run: int
    moves: dict[str, int] = Field(description="Targets by the id of their new account.")
    stays: dict[str, int] = Field(description="Targets that stay, by the reason.")
    told: str
    as_it_is: CourseShown
    handed_over: CourseShown | None = Field(description="Null where nothing would move.")


class HandOverShown(Shown):
    """A hand-over that was shown, or done."""

    done: bool
    moved: int
    told: list[str] = Field(description="A sentence for each run that was handed over.")
    refused: list[str] = Field(description="A sentence for each run that was not.")
    waiting: list[str] = Field(
        default=[],
        description="A sentence for each run that a second person has to approve first, at /approvals.",
    )
    previews: list[PreviewShown] = Field(description="Where nothing was done: what would be.")


class TargetsAsked(ListAsked):
    """The filters of a run's targets."""

    status: TargetStatus | None = None


class TargetShown(Shown):
    """One recipient of a run."""

    id: int
    run: int
    recipient: int
    address: str
    account: int
    status: TargetStatus
    not_before: datetime
    attempts: int
    parts_done: int
    error: str
    provider_id: str
    settled_at: datetime | None
    delivered_at: datetime | None
    read_at: datetime | None
    returned_at: datetime | None = Field(description="Since when the service says that it failed after all.")
    return_kind: str = Field(description="temporary, permanent, complaint, or empty.")
    return_reason: str
    leaves_at: datetime | None = Field(
        description="Not before this time; null if it does not leave any more."
    )
    waiting_for: str
    sentence: str


class AttemptsAsked(ListAsked):
    """The filters of the ledger, the newest first."""

    account: Id | None = None
    run: Id | None = None
    outcome: AttemptOutcome | None = None
    since: Moment | None = None
    until: Moment | None = None


class AttemptShown(Shown):
    """One message that left or may have left."""

    id: int
    at: datetime
    owner: int
    account: int
    run: int | None
    target: int | None
    action: Action
    part: int
    attempt: int
    outcome: AttemptOutcome
    provider_id: str
    error: str
    took_ms: int


class RepliesAsked(ListAsked):
    """The filters of the replies, the newest first."""

    account: Id | None = None
    recipient: Id | None = None
    run: Id | None = None


class ReplyShown(Shown):
    """A message that somebody sent to an account."""

    id: int
    at: datetime
    account: int
    recipient: int | None
    run: int | None = Field(description="The run of the message that it answers.")
    target: int | None
    sender: str
    subject: str
    text: str


Verb = Literal["undo", "pause", "resume", "cancel", "retry", "archive", "unarchive"]
TargetVerb = Literal["confirm", "resend"]
