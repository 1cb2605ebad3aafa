"""The statuses of runs, targets and accounts, and the legal moves between them.

The same words are check constraints in the database; docs/lifecycle.md draws the moves.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeVar

S = TypeVar("S", bound=StrEnum)


class RunStatus(StrEnum):
    """The status of one firing of a reminder."""

    QUEUED = "queued"  # waits for its window to open
    RUNNING = "running"  # its targets may be sent
    PAUSED = "paused"  # nothing is sent until a person, or the next window, resumes it
    SUCCESS = "success"  # everyone who could get it did
    PARTIAL = "partial"  # all settled, some failed, skipped or left unconfirmed
    FAILED = "failed"  # all settled, none sent
    CANCELED = "canceled"  # canceled by the operator before anything was sent
    SKIPPED = "skipped"  # a due moment that was not run


class PauseReason(StrEnum):
    """The reason why a run is paused."""

    WINDOW_CLOSED = "window_closed"
    DAILY_CAP = "daily_cap"
    ERROR_RATE = "error_rate"
    OPERATOR = "operator"
    ACCOUNT_OFFLINE = "account_offline"
    ACCOUNT_FLAGGED = "account_flagged"
    ACCOUNT_HEALTH = "account_health"  # too many of the account's messages came back


# Runs paused for these reasons continue by themselves once the account may send again.
GO_ON_WITH_THEIR_ACCOUNT = frozenset(
    {PauseReason.ACCOUNT_OFFLINE, PauseReason.ACCOUNT_FLAGGED, PauseReason.ACCOUNT_HEALTH}
)


WITHDRAWN = "withdrawn"  # the error of a skipped target whose item was withdrawn


class TargetStatus(StrEnum):
    """The status of one recipient of one run."""

    PENDING = "pending"  # waits to be sent, not before `not_before`
    SENDING = "sending"  # claimed by a pump; begun once `begun_at` is set
    SENT = "sent"  # the service took every part
    FAILED = "failed"  # refused for good, or out of attempts
    SKIPPED = "skipped"  # not to be sent: opted out, canceled, window missed
    UNCONFIRMED = "unconfirmed"  # may or may not have arrived; a person decides


class ReturnKind(StrEnum):
    """The kind of a late failure: what a service reported after it had taken a message."""

    TEMPORARY = "temporary"  # this message did not arrive; the next one may
    PERMANENT = "permanent"  # nothing arrives at this address
    COMPLAINT = "complaint"  # it arrived, and its recipient reported it as unwanted


class AccountStatus(StrEnum):
    """The status of an account: whether it can send."""

    UNPAIRED = "unpaired"  # not connected to its service yet
    PAIRING = "pairing"  # a pairing code is on screen
    ACTIVE = "active"  # may send
    PAUSED = "paused"  # paused by a person
    OFFLINE = "offline"  # its service does not answer, or has no connection
    FLAGGED = "flagged"  # its service blocked it or logged it out


class WaitReason(StrEnum):
    """The reason why an account is not sending at this moment."""

    NOTHING_TO_SEND = "nothing_to_send"
    GAP = "gap"  # the pause between two messages
    PER_MINUTE = "per_minute"
    PER_HOUR = "per_hour"
    PER_DAY = "per_day"
    PER_24_HOURS = "per_24_hours"
    PER_7_DAYS = "per_7_days"
    PER_30_DAYS = "per_30_days"
    BATCH_PAUSE = "batch_pause"
    SLOWED = "slowed"  # held back after a rate-limit answer
    NOT_BEFORE = "not_before"  # the next target is planned for later
    NEW_PER_DAY = "new_per_day"  # the next target is a new person, and the day has no place for one
    NEW_PER_WEEK = "new_per_week"
    FIRST_CONTACTS = "first_contacts"  # and the service locks first contacts
    WINDOW = "window"  # outside the delivery window
    WORKING_HOURS = "working_hours"  # outside the account's own hours
    LIMITER_AWAY = "limiter_away"  # Redis does not answer, so nothing may leave
    CLOCKS = "clocks"  # the clocks of Redis, the database and the worker disagree
    ACCOUNT_STOPPED = "account_stopped"  # the account itself may not send
    MEDIA_UNREADABLE = "media_unreadable"  # the worker cannot read a file of the run
    SENDING_STOPPED = "sending_stopped"  # a person stopped all sending, or all of the owner's
    NO_WORKER = "no_worker"  # it was woken several times, and no worker serves it


class TroubleKind(StrEnum):
    """The kind of trouble that keeps an active account from sending, without a recipient's fault."""

    UNREACHABLE = "unreachable"  # its service cannot be reached
    NOT_CONNECTED = "not_connected"  # its service answers, and has no connection for it
    RATE_LIMITED = "rate_limited"  # its service asks us to slow down
    SERVER_ERRORS = "server_errors"  # its service fails, one message after another
    IN_DOUBT = "in_doubt"  # its service leaves several messages in a row in doubt


SETTLED_RUN = frozenset(
    {RunStatus.SUCCESS, RunStatus.PARTIAL, RunStatus.FAILED, RunStatus.CANCELED, RunStatus.SKIPPED}
)
OPEN_RUN = frozenset(RunStatus) - SETTLED_RUN
SETTLED_TARGET = frozenset(
    {TargetStatus.SENT, TargetStatus.FAILED, TargetStatus.SKIPPED, TargetStatus.UNCONFIRMED}
)

# First statuses: a run is `queued`, or `skipped` at once; a target `pending`; an account `unpaired`.
RUN_MOVES: Mapping[RunStatus, frozenset[RunStatus]] = {
    RunStatus.QUEUED: frozenset({RunStatus.RUNNING, RunStatus.PAUSED}) | SETTLED_RUN - {RunStatus.SKIPPED},
    RunStatus.RUNNING: frozenset({RunStatus.QUEUED, RunStatus.PAUSED}) | SETTLED_RUN - {RunStatus.SKIPPED},
    RunStatus.PAUSED: frozenset({RunStatus.QUEUED, RunStatus.RUNNING}) | SETTLED_RUN - {RunStatus.SKIPPED},
    RunStatus.SUCCESS: frozenset(),
    # "Retry failed" and an unconfirmed target sent again open a settled run; one marked sent re-settles it.
    RunStatus.PARTIAL: frozenset({RunStatus.QUEUED, RunStatus.RUNNING, RunStatus.SUCCESS, RunStatus.FAILED}),
    RunStatus.FAILED: frozenset({RunStatus.QUEUED, RunStatus.RUNNING, RunStatus.SUCCESS, RunStatus.PARTIAL}),
    RunStatus.CANCELED: frozenset(),
    RunStatus.SKIPPED: frozenset(),
}

TARGET_MOVES: Mapping[TargetStatus, frozenset[TargetStatus]] = {
    TargetStatus.PENDING: frozenset({TargetStatus.SENDING, TargetStatus.SKIPPED}),
    TargetStatus.SENDING: frozenset(TargetStatus) - {TargetStatus.SENDING},
    TargetStatus.SENT: frozenset(),
    TargetStatus.FAILED: frozenset({TargetStatus.PENDING}),
    TargetStatus.SKIPPED: frozenset(),
    TargetStatus.UNCONFIRMED: frozenset({TargetStatus.PENDING, TargetStatus.SENT}),
}

ACCOUNT_MOVES: Mapping[AccountStatus, frozenset[AccountStatus]] = {
    AccountStatus.UNPAIRED: frozenset({AccountStatus.PAIRING, AccountStatus.ACTIVE}),
    AccountStatus.PAIRING: frozenset({AccountStatus.UNPAIRED, AccountStatus.ACTIVE, AccountStatus.OFFLINE}),
    AccountStatus.ACTIVE: frozenset(AccountStatus) - {AccountStatus.ACTIVE},
    AccountStatus.PAUSED: frozenset(AccountStatus) - {AccountStatus.PAUSED},
    AccountStatus.OFFLINE: frozenset(AccountStatus) - {AccountStatus.OFFLINE},
    AccountStatus.FLAGGED: frozenset({AccountStatus.UNPAIRED, AccountStatus.PAIRING, AccountStatus.ACTIVE}),
}


class IllegalMoveError(ValueError):
    """Raised when a status was asked to become one that it cannot become."""


def may_move(moves: Mapping[S, frozenset[S]], old: S, new: S) -> bool:
    """Decide whether `old` may become `new`. A status may always stay the same."""
    return old == new or new in moves[old]
