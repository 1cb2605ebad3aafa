"""What a homeserver's `/sync` tells, as events."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from delivery.transports.base import Inbound
from delivery.transports.http.reading import at, items, moment, text

MOST_PER_ROOM = 100
_NOTHING: dict[str, Any] = {"types": []}


def query(since: str) -> dict[str, str]:
    """Messages alone, and none of what was said before the first time."""
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
    """Every message of others, room by room in the order in which it was said."""
    rooms = at(found, "rooms", "join")
    return [event for room in (rooms or {}) for event in _of_room(room, rooms[room], own)]


def _of_room(room: str, told: object, own: str) -> Iterator[Inbound]:
    for event in items(told, "timeline", "events"):
        sender, event_id = text(event, "sender"), text(event, "event_id")
        edited = text(event, "content", "m.relates_to", "rel_type") == "m.replace"
        if not event_id or sender == own or edited or text(event, "type") != "m.room.message":
            continue
        yield Inbound(
            event_id=event_id,
            provider_id=event_id,
            sender=sender,
            chat=room,
            text=_said(event),
            at=_when(event),
        )


def _when(event: object) -> datetime:
    told = at(event, "origin_server_ts")
    return moment(told / 1000 if isinstance(told, int | float) else None, otherwise=datetime.now(UTC))


def _said(event: object) -> str:
    """The words, without the quotation that clients put before an answer."""
    words = text(event, "content", "body")
    if not at(event, "content", "m.relates_to", "m.in_reply_to"):
        return words
    quoted, blank, answer = words.partition("\n\n")
    return answer if blank and all(line.startswith("> ") for line in quoted.splitlines()) else words
