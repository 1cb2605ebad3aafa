"""Reads the answers of a homeserver's `/sync` as events."""

import json
from collections.abc import Collection, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from delivery.transports.base import Inbound, sendable
from delivery.transports.http.reading import at, items, moment, text

MOST_PER_ROOM = 100
# Messages of programs, which the protocol asks others not to answer, and messages between clients.
NO_REPLY = frozenset({"m.notice", "m.server_notice", "m.key.verification.request", "m.bad.encrypted"})
_NOTHING: dict[str, Any] = {"types": []}


def query(since: str) -> dict[str, str]:
    """Return the filter: messages alone, and none from before the first poll."""
    wanted = {
        "presence": _NOTHING,
        "account_data": _NOTHING,
        "room": {
            "account_data": _NOTHING,
            "ephemeral": _NOTHING,
            "state": _NOTHING,
            "timeline": {"types": ["m.room.message"], "limit": MOST_PER_ROOM if since else 1},
        },
    }
    asked = {"timeout": "0", "filter": json.dumps(wanted)}
    return {**asked, "since": since} if since else asked


def events(found: dict[str, Any], *, own: str) -> list[Inbound]:
    """Yield every message of others, room by room in its order."""
    rooms = at(found, "rooms", "join")
    if not isinstance(rooms, dict):
        return []
    return [event for room in rooms for event in _of_room(sendable(room), rooms[room], own)]


def in_direct_rooms(found: list[Inbound], direct: Collection[str]) -> list[Inbound]:
    """Return the events; those in one of the direct rooms are marked as such."""
    return [replace(event, direct=event.chat in direct) for event in found]


def others_in(found: object, *, own: str) -> int:
    """Return how many others a room has, by the answer to `joined_members`."""
    joined = at(found, "joined")
    return len(set(joined) - {own}) if isinstance(joined, dict) else 0


def direct_rooms(found: object) -> set[str]:
    """Return the rooms that the user's own clients know as a conversation with one person (`m.direct`)."""
    by_person = found if isinstance(found, dict) else {}
    return {room for rooms in by_person.values() for room in items(rooms) if isinstance(room, str)}


def _of_room(room: str, told: object, own: str) -> Iterator[Inbound]:
    for event in items(told, "timeline", "events"):
        sender, event_id = text(event, "sender"), text(event, "event_id")
        if event_id and sender != own and _is_reply(event):
            yield Inbound(
                event_id=event_id,
                provider_id=event_id,
                sender=sender,
                chat=room,
                text=_said(event),
                at=_when(event),
            )


def _is_reply(event: object) -> bool:
    edited = text(event, "content", "m.relates_to", "rel_type") == "m.replace"
    # A deleted message has no content any more.
    kind = text(event, "content", "msgtype")
    return text(event, "type") == "m.room.message" and bool(kind) and kind not in NO_REPLY and not edited


def _when(event: object) -> datetime:
    told = at(event, "origin_server_ts")
    seconds = told // 1000 if isinstance(told, int) else told / 1000 if isinstance(told, float) else None
    return moment(seconds, otherwise=datetime.now(UTC))


def _said(event: object) -> str:
    """Return the words, without the quotation that clients put before an answer."""
    words = text(event, "content", "body")
    if not at(event, "content", "m.relates_to", "m.in_reply_to"):
        return words
    quoted, blank, answer = words.partition("\n\n")
    return answer if blank and all(line.startswith("> ") for line in quoted.splitlines()) else words
