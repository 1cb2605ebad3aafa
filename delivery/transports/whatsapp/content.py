"""Reads the content of a WhatsApp message as phones send it, and as Evolution and WAHA's engines pass it on.

A content is an object with a field for each thing that the message holds. Several may lie side by side: the first
message of somebody in a group carries a key for its members beside the words. Some contents lie inside another one,
as those of messages that disappear.
"""

from collections.abc import Mapping
from typing import Any

from delivery.transports.http.reading import at, parsed, text

# Wrappers around the real content, under `message`. Baileys unwraps the same ones.
WRAPPERS = (
    "ephemeralMessage",
    "viewOnceMessage",
    "viewOnceMessageV2",
    "viewOnceMessageV2Extension",
    "documentWithCaptionMessage",
    "editedMessage",
    "groupMentionedMessage",
    "botInvokeMessage",
    "lottieStickerMessage",
    "associatedChildMessage",
    "deviceSentMessage",
)
MOST_WRAPPERS = 8  # real messages have two levels

# Not written by a person: keys, votes, reactions, edits, deletions, pins, calls, and messages between phones.
NO_REPLY = frozenset(
    {
        "albumMessage",  # says that pictures follow, each as a message of its own
        "bcallMessage",
        "call",
        "callLogMesssage",  # spelt so by WhatsApp
        "chat",
        "encEventResponseMessage",
        "encReactionMessage",
        "eventResponseMessage",
        "fastRatchetKeySenderKeyDistributionMessage",
        "initialSecurityNotificationSettingSync",
        "keepInChatMessage",
        "messageContextInfo",
        "messageHistoryBundle",
        "messageHistoryNotice",
        "pinInChatMessage",
        "placeholderMessage",
        "pollResultSnapshotMessage",
        "pollUpdateMessage",
        "protocolMessage",
        "reactionMessage",
        "scheduledCallCreationMessage",
        "scheduledCallEditMessage",
        "secretEncryptedMessage",
        "senderKeyDistributionMessage",
        "statusNotificationMessage",
        "stickerSyncRmrMessage",
    }
)

# Where the words are, the plain ones first: of a button, what it shows comes before what it is called.
WORDS = (
    ("conversation",),
    ("extendedTextMessage", "text"),
    ("imageMessage", "caption"),
    ("videoMessage", "caption"),
    ("ptvMessage", "caption"),
    ("documentMessage", "caption"),
    ("buttonsResponseMessage", "selectedDisplayText"),
    ("buttonsResponseMessage", "selectedButtonId"),
    ("templateButtonReplyMessage", "selectedDisplayText"),
    ("templateButtonReplyMessage", "selectedId"),
    ("listResponseMessage", "title"),
    ("listResponseMessage", "singleSelectReply", "selectedRowId"),
    ("interactiveResponseMessage", "body", "text"),
    ("liveLocationMessage", "caption"),
    ("locationMessage", "comment"),
    ("groupInviteMessage", "caption"),
    ("orderMessage", "message"),
)
FLOW = ("interactiveResponseMessage", "nativeFlowResponseMessage", "paramsJson")


def said(content: object) -> str | None:
    """Return the words of a content, empty for a picture alone; None where it is no reply."""
    inside = _unwrapped(content)
    if not isinstance(inside, Mapping):
        return None
    told = {name for name, value in inside.items() if value is not None}
    if not told - NO_REPLY:
        return None
    return next(filter(None, (text(inside, *path) for path in WORDS)), "") or _chosen(inside)


def _unwrapped(content: Any) -> Any:
    for _ in range(MOST_WRAPPERS):
        inside = next(filter(None, (at(content, name, "message") for name in WRAPPERS)), None)
        if inside is None:
            return content
        content = inside
    return content


def _chosen(content: object) -> str:
    """Return the pressed button of the newest kind of button message, which is JSON inside a string."""
    pressed = parsed(text(content, *FLOW).encode())
    return text(pressed, "display_text") or text(pressed, "title") or text(pressed, "id")
