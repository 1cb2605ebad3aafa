"""The look of each state: an icon, a word and a tone, so that colour is never the only sign.

There is one table for every kind of state. Where two kinds share a word ("paused"), they share its look.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Tone(StrEnum):
    """The colour families of static/css/tokens.css."""

    GOOD = "good"  # done as intended
    BUSY = "busy"  # under way
    WARN = "warn"  # waits for a person, or is only partly done
    BAD = "bad"  # failed
    DOUBT = "doubt"  # not known yet
    CALM = "calm"  # needs no attention


@dataclass(frozen=True, slots=True)
class Look:
    """The contents of a pill. `icon` is a symbol of static/icons/sprite.svg."""

    icon: str
    word: str
    tone: Tone


RUN_LOOKS: Mapping[str, Look] = {
    "queued": Look("queued", "Queued", Tone.CALM),
    "running": Look("running", "Running", Tone.BUSY),
    "paused": Look("paused", "Paused", Tone.WARN),
    "success": Look("success", "Success", Tone.GOOD),
    "partial": Look("partial", "Partial", Tone.WARN),
    "failed": Look("failed", "Failed", Tone.BAD),
    "canceling": Look("canceled", "Canceling\N{HORIZONTAL ELLIPSIS}", Tone.BUSY),
    "canceled": Look("canceled", "Canceled", Tone.CALM),
    "skipped": Look("skipped", "Skipped", Tone.CALM),
}

TARGET_LOOKS: Mapping[str, Look] = {
    "sent": Look("sent", "Sent", Tone.GOOD),
    "returned": Look("retry", "Returned", Tone.WARN),
    "failed": RUN_LOOKS["failed"],
    "skipped": RUN_LOOKS["skipped"],
    "unconfirmed": Look("unconfirmed", "Unconfirmed", Tone.DOUBT),
    "sending": Look("sending", "Sending", Tone.BUSY),
    "pending": Look("pending", "Pending", Tone.CALM),
}

ACCOUNT_LOOKS: Mapping[str, Look] = {
    "unpaired": Look("unpaired", "Not connected", Tone.CALM),
    "pairing": Look("pairing", "Pairing", Tone.BUSY),
    "active": Look("active", "Active", Tone.GOOD),
    "paused": RUN_LOOKS["paused"],
    "offline": Look("offline", "Offline", Tone.WARN),
    "flagged": Look("flagged", "Flagged", Tone.BAD),
}

REMINDER_LOOKS: Mapping[str, Look] = {
    "draft": Look("draft", "Draft", Tone.CALM),
    "scheduled": Look("scheduled", "Scheduled", Tone.BUSY),
    "off": Look("off", "Switched off", Tone.CALM),
    "done": Look("check-circle", "Done", Tone.GOOD),
    "archived": Look("archived", "Archived", Tone.CALM),
}

RECIPIENT_LOOKS: Mapping[str, Look] = {
    "reachable": Look("check", "Reachable", Tone.CALM),
    "opted_out": Look("opted-out", "Opted out", Tone.BAD),
    "undeliverable": Look("x-circle", "Undeliverable", Tone.BAD),
    "blocked": Look("canceled", "Blocked", Tone.BAD),
    "cooling_down": Look("cooldown", "Cooling down", Tone.WARN),
    "not_interested": Look("skipped", "Not interested", Tone.CALM),
    "converted": Look("check-circle", "Converted", Tone.GOOD),
}

ITEM_LOOKS: Mapping[str, Look] = {
    "planned": Look("scheduled", "Planned", Tone.BUSY),
    "in_doubt": Look("unconfirmed", "In doubt", Tone.DOUBT),
    "withdrawn": Look("canceled", "Withdrawn", Tone.CALM),
}

FOLLOW_UP_LOOKS: Mapping[str, Look] = {"removed": Look("skipped", "Removed", Tone.CALM)}

OUTCOME_LOOKS: Mapping[str, Look] = {
    "sent": TARGET_LOOKS["sent"],
    "rate_limited": Look("gauge", "Rate limited", Tone.WARN),
    "not_connected": Look("offline", "Not connected", Tone.WARN),
    "unreachable": Look("offline", "Unreachable", Tone.WARN),
    "server_error": Look("alert", "Server error", Tone.WARN),
    "try_again": Look("retry", "Try again", Tone.WARN),
    "held_back": Look("clock", "Held back", Tone.WARN),
    "rejected": Look("failed", "Rejected", Tone.BAD),
    "account_blocked": Look("flagged", "Account blocked", Tone.BAD),
    "unknown": Look("unconfirmed", "Unknown", Tone.DOUBT),
}

RECORD_LOOKS: Mapping[str, Look] = {
    "good": Look("check-circle", "Good", Tone.GOOD),
    "warn": Look("alert", "Could be better", Tone.WARN),
    "bad": Look("failed", "Fix this", Tone.BAD),
}

NOTIFICATION_LOOKS: Mapping[str, Look] = {
    "paused": RUN_LOOKS["paused"],
    "partial": RUN_LOOKS["partial"],
    "success": RUN_LOOKS["success"],
    "failed": RUN_LOOKS["failed"],
    "canceled": RUN_LOOKS["canceled"],
    "missed": Look("clock", "Missed", Tone.WARN),
    "account": Look("alert", "Account", Tone.BAD),
    "waiting": Look("clock", "Waits for you", Tone.WARN),
    "approval": Look("help", "Approval needed", Tone.WARN),
    "webhook": Look("offline", "Webhook off", Tone.BAD),
}

MESSAGE_LOOKS: Mapping[str, Look] = {
    "debug": Look("info", "Debug", Tone.CALM),
    "info": Look("info", "Note", Tone.BUSY),
    "success": Look("check-circle", "Done", Tone.GOOD),
    "warning": Look("alert", "Warning", Tone.WARN),
    "error": Look("failed", "Error", Tone.BAD),
}

MOOD_ICONS: Mapping[str, str] = {"calm": "info", "sending": "sending", "waiting": "clock", "trouble": "alert"}

_PILLS: Mapping[str, Look] = (
    dict(NOTIFICATION_LOOKS)
    | dict(RECORD_LOOKS)
    | dict(OUTCOME_LOOKS)
    | dict(FOLLOW_UP_LOOKS)
    | dict(ITEM_LOOKS)
    | dict(RECIPIENT_LOOKS)
    | dict(REMINDER_LOOKS)
    | dict(ACCOUNT_LOOKS)
    | dict(TARGET_LOOKS)
    | dict(RUN_LOOKS)
)


def look_of(state: str) -> Look:
    """Return the look of any state; a state without a look of its own shows its word."""
    return _PILLS.get(state) or Look("help", state.replace("_", " ").capitalize(), Tone.CALM)
