"""The shapes of reminders: their message, audience, times and forecast; and of single messages."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from accounts.models.account import Action, Channel
from api.schemas.base import MOST_PER_CALL, Asked, Id, Leaving, ListAsked, Moment, Shown
from api.schemas.runs import RunShown
from reminders.message import MOST_PARTS
from reminders.models import Reminder

Text = Annotated[str, Field(max_length=65_536)]
Subject = Annotated[str, Field(max_length=200)]
ReminderName = Annotated[str, StringConstraints(max_length=120, strip_whitespace=True)]
ReminderStatus = Literal["draft", "scheduled", "off", "done"]
Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
DAYS: tuple[Day, ...] = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
Accounts = Annotated[list[Id], Field(max_length=100)]


class RemindersAsked(ListAsked):
    """The filters of the list of reminders, the newest first."""

    status: ReminderStatus | None = None
    owner: Id | None = None
    archived: bool = False


class PartShown(Shown):
    """One text, or one file with its caption. Each is a message of its own."""

    kind: Literal["text", "media"]
    text: str
    other_wordings: list[str]
    media: int | None
    filename: str


class WindowShown(Shown):
    """The hours in which messages leave, in the reminder's zone."""

    start_hour: int
    end_hour: int
    days: list[Day]


class ReminderShown(Leaving):
    """A reminder, and when it leaves."""

    id: int
    owner: int
    name: str
    status: ReminderStatus
    channel: Channel
    action: Action
    subject: str
    schedule: Reminder.Schedule
    fire_at: datetime | None
    cron: str
    zone: str
    next_fire_at: datetime | None
    window: WindowShown
    on_close: Reminder.OnClose
    on_overlap: Reminder.OnOverlap
    on_paused: Reminder.OnPaused
    priority: int
    drip: bool
    drip_gap_min: int = Field(description="Seconds.")
    drip_gap_max: int = Field(description="Seconds.")
    created_at: datetime
    updated_at: datetime
    archived_at: datetime | None


class StepProblem(Shown):
    """Something that keeps the reminder from being scheduled."""

    field: str
    detail: str


class ReminderDetail(ReminderShown):
    """A reminder with its message, its accounts and tags, and what is missing."""

    parts: list[PartShown]
    second_parts: list[PartShown]
    accounts: list[int]
    tags: list[str]
    recipients: int = Field(description="How many are chosen one by one; those of tags come on top.")
    problems: list[StepProblem]
    approval: int | None = Field(
        description="The request in /approvals that its next time waits for: without it, that time passes."
    )


class ReminderGiven(Asked):
    """A new draft."""

    name: ReminderName = ""
    owner: Id | None = None


class PartGiven(Asked):
    """A text, or a file by its id with a caption."""

    text: Text = ""
    media: Id | None = None
    other_wordings: Annotated[list[Text], Field(max_length=4)] = Field(
        default=[], description="Wordings B to E; each recipient gets one of all wordings."
    )


Parts = Annotated[list[PartGiven], Field(max_length=MOST_PARTS)]


class MessageGiven(Asked):
    """The message of a reminder. What is left out stays as it is; parts are replaced as a whole."""

    name: ReminderName | None = None
    subject: Subject | None = None
    parts: Parts | None = None
    second_parts: Parts | None = Field(default=None, description="Sent at once after a reply.")


class AudienceGiven(Asked):
    """The recipients and the accounts. Fields that are left out stay as they are."""

    accounts: Accounts | None = Field(default=None, description="In the order in which people are shared.")
    action: Action | None = None
    tags: Annotated[list[Id], Field(max_length=200)] | None = Field(
        default=None, description="Everyone who has one of these tags when it fires."
    )
    add: Annotated[list[Id], Field(max_length=MOST_PER_CALL)] = Field(
        default=[], description="Recipients to choose one by one."
    )
    remove: Annotated[list[Id], Field(max_length=MOST_PER_CALL)] = []


class AudienceShown(Shown):
    """The numbers of an audience."""

    accounts: list[int]
    reached: int
    excluded: dict[str, int] = Field(description="Recipients who get nothing, by reason.")
    lacking: dict[str, int] = Field(description="Of those reached: without a value, by variable.")
    short: int = Field(description="Of those reached: get nothing because a value is missing.")


class TimesGiven(Asked):
    """When it is sent and in which hours. What is left out stays as it is."""

    schedule: Reminder.Schedule | None = None
    at: Moment | None = Field(default=None, description="When it is sent once.")
    cron: Annotated[str, Field(max_length=100)] | None = None
    zone: Annotated[str, Field(max_length=64)] | None = None
    start_hour: Annotated[int, Field(ge=0, le=23)] | None = None
    end_hour: Annotated[int, Field(ge=1, le=24)] | None = None
    days: Annotated[list[Day], Field(min_length=1, max_length=7)] | None = None
    on_close: Reminder.OnClose | None = None
    on_overlap: Reminder.OnOverlap | None = None
    on_paused: Reminder.OnPaused | None = None
    priority: Annotated[int, Field(ge=-100, le=100)] | None = None
    drip: bool | None = None
    drip_gap_min: Annotated[int, Field(ge=30, le=86_400)] | None = None
    drip_gap_max: Annotated[int, Field(ge=30, le=86_400)] | None = None


class PauseShown(Shown):
    """A time during which the run would wait."""

    at: datetime
    until: datetime | None
    cause: str
    done: int


class ForecastShown(Leaving):
    """How a run would go: when it begins, when it pauses, when it is finished."""

    fits: bool
    label: str
    suggestion: str
    targets: int
    parts: int
    minutes: int
    fires_at: datetime
    finishes_at: datetime | None
    pauses: list[PauseShown]


class ContentShown(Shown):
    """A fingerprint of everything that would leave."""

    content: str


Content = Annotated[
    str,
    Field(
        max_length=64,
        description="The fingerprint of what you looked at, from /content. If the message, the recipients, the "
        "accounts or the times are others by now, nothing is done.",
    ),
]


class ScheduleGiven(Asked):
    """The reminder that is expected to be scheduled."""

    content: Content = ""


class FireGiven(Asked):
    """How to fire. A dry run changes nothing and says what would happen."""

    dry_run: bool = False
    content: Content = ""
    without_short: bool = Field(
        default=False, description="Leave out recipients who lack a value that the message needs."
    )
    number: int | None = Field(
        default=None,
        ge=0,
        description="Above 100 recipients: how many you expect to get it. If more would, nothing is sent.",
    )
    again: Literal["rest", "everyone"] | None = Field(
        default=None,
        description="Where people received it within a day: leave them out, or send it to everyone again.",
    )


class Fired(Leaving):
    """The effect of a firing, made or only asked about."""

    dry_run: bool
    run: RunShown | None
    approval: int | None = Field(
        default=None,
        description="The request in /approvals that it waits for: a second person has to approve it.",
    )
    audience: AudienceShown
    forecast: ForecastShown


class MediaShown(Shown):
    """A file that parts can name."""

    id: int
    owner: int
    sha256: str
    filename: str
    content_type: str
    size: int
    created_at: datetime


class ToWhom(Asked):
    """A recipient by address; it is added if there is none."""

    channel: Channel
    address: Annotated[str, Field(min_length=1, max_length=255)]
    name: Annotated[str, Field(max_length=200)] = ""


class OneMessage(Asked):
    """One message to one recipient."""

    accounts: Annotated[list[Id], Field(min_length=1, max_length=100)] = Field(
        description="The account that sends it, or several to choose from: the one that last wrote to the recipient, "
        "else the one with most room left today."
    )
    recipient: Id | None = None
    to: ToWhom | None = Field(default=None, description="Instead of `recipient`.")
    subject: Subject = ""
    text: Text = ""
    parts: Parts = []
    not_before: Moment | None = None
    start_hour: Annotated[int, Field(ge=0, le=23)] | None = None
    end_hour: Annotated[int, Field(ge=1, le=24)] | None = None
    days: Annotated[list[Day], Field(min_length=1, max_length=7)] | None = None
    zone: Annotated[str, Field(max_length=64)] | None = None
    priority: Annotated[int, Field(ge=-100, le=100)] = 0
    dry_run: bool = Field(default=False, description="Send nothing, and say what would be sent.")


class MessagePlanned(Leaving):
    """The effect that a message would have. Nothing was sent, and nobody was added."""

    dry_run: bool = True
    recipient: int | None = Field(description="Null for an address that is not among the recipients yet.")
    address: str
    name: str
    account: int
    account_name: str
    subject: str
    texts: list[str] = Field(description="The parts as they would leave; a file shows its name and caption.")


class MessageShown(Leaving):
    """One message: a run with one target, which /runs shows and steers."""

    id: int = Field(description="The run.")
    target: int
    recipient: int
    account: int
    status: str
