"""The words for every reason to wait, to pause or to stop: the only table of them. Pure.

Pages, lists, the admin, e-mails and live messages take their words from here; a test checks that none is missing.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from delivery.pacing import LONG_SPANS, span_words
from delivery.states import AccountStatus, PauseReason, WaitReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """The sentence for one reason, and the words before its clock."""

    said: str
    clock: str = "continues in"
    uncounted: str = ""  # the sentence if the number is not known
    lasting: bool = False  # stays until another reason is stored, and is shown before any trouble


WAITS: Mapping[str, Words] = {
    WaitReason.NOTHING_TO_SEND: Words(said="messages are being sent."),
    WaitReason.GAP: Words(said="", clock="next message in"),
    WaitReason.PER_MINUTE: Words(
        said="limit reached: {limit} messages per minute.", uncounted="limit per minute reached."
    ),
    WaitReason.PER_HOUR: Words(
        said="limit reached: {limit} messages per hour.", uncounted="limit per hour reached."
    ),
    WaitReason.PER_DAY: Words(
        said="limit reached: {limit} messages per day.", uncounted="limit per day reached."
    ),
    **{
        name: Words(
            said=f"limit reached: {{limit}} messages per {span_words(name)}.",
            uncounted=f"limit per {span_words(name)} reached.",
        )
        for name in LONG_SPANS
    },
    WaitReason.BATCH_PAUSE: Words(said="taking a break after a batch."),
    WaitReason.SLOWED: Words(said="waiting, because {server} asked us to slow down.", clock="next try in"),
    WaitReason.NOT_BEFORE: Words(said="the next message is planned for later.", clock="next message in"),
    WaitReason.NEW_PER_DAY: Words(
        said="limit reached: {limit} new people per day. The rest follows on later days.",
        uncounted="limit of new people per day reached.",
        clock="next message in",
    ),
    WaitReason.NEW_PER_WEEK: Words(
        said="limit reached: {limit} new people per week. The rest follows on later days.",
        uncounted="limit of new people per week reached.",
        clock="next message in",
    ),
    WaitReason.FIRST_CONTACTS: Words(
        said="the service allows no messages to new people for now.", clock="next message in"
    ),
    WaitReason.WINDOW: Words(said="the delivery window is closed.", clock="opens in"),
    WaitReason.WORKING_HOURS: Words(said="outside the account's working hours."),
    WaitReason.LIMITER_AWAY: Words(
        said="Redis does not answer. Nothing is sent until it does.", clock="next try in"
    ),
    WaitReason.ACCOUNT_STOPPED: Words(said="the account is stopped."),
    "clocks": Words(said="{detail} Nothing is sent until the clocks agree.", lasting=True),
    "sending_stopped": Words(said="all sending is stopped.", lasting=True),
    "no_worker": Words(said="no worker serves this account. Check that the workers run.", lasting=True),
    "media_unreadable": Words(
        said="the worker cannot read a file of the message. Check that every worker sees the media folder.",
        clock="next try in",
    ),
}

# By `TroubleKind`. The cause follows in brackets.
TROUBLES: Mapping[str, str] = {
    "unreachable": "no answer from {server} since {since}",
    "not_connected": "{server} reports that the account is not connected since {since}",
    "rate_limited": "{service} asked us to slow down at {since}",
    "server_errors": "{server} answers with errors since {since}",
    "in_doubt": "{server} does not say since {since} whether messages arrived",
}

STOPPED: Mapping[AccountStatus, str] = {
    AccountStatus.UNPAIRED: "not connected to the service",
    AccountStatus.PAIRING: "waiting for the code to be scanned",
    AccountStatus.ACTIVE: "ready",
    AccountStatus.PAUSED: "paused by a person",
    AccountStatus.OFFLINE: "offline",
    AccountStatus.FLAGGED: "blocked by the service. Please check the reason",
}

# The sentence after the status and its reason.
AFTERWARDS: Mapping[AccountStatus, str] = {
    AccountStatus.OFFLINE: "Continues automatically when the connection is back.",
}

# Why a run is paused, in a few words; its summary says more.
PAUSES: Mapping[str, str] = {
    PauseReason.WINDOW_CLOSED: "the delivery window closed",
    PauseReason.DAILY_CAP: "the daily limit is reached",
    PauseReason.ERROR_RATE: "too many errors",
    PauseReason.OPERATOR: "",  # the summary begins with the person's name
    PauseReason.ACCOUNT_OFFLINE: "the account is offline",
    PauseReason.ACCOUNT_FLAGGED: "the account is flagged",
    PauseReason.ACCOUNT_HEALTH: "the account's health",
}
