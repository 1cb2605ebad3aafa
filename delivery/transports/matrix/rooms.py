"""Reads rooms from a homeserver: which of them take messages, their names, and their members."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

from delivery.transports.base import Contact
from delivery.transports.http.reading import text
from delivery.transports.matrix import reports

AT_ONCE = 20
# A room may become encrypted at any time, and never plain again.
BELIEVED_FOR = 300.0  # seconds
SPACE = "m.space"
ENCRYPTED = (
    "the room is encrypted, and Paceline cannot write encrypted messages; use a room without encryption"
)
A_SPACE = "this is a space, which holds rooms and no messages; use one of its rooms"


class Rooms:
    """The rooms of one user. `fetch` returns the value at a path, empty where there is none for the user."""

    def __init__(self, fetch: Callable[..., Awaitable[dict[str, Any]]]) -> None:
        self._fetch = fetch
        self._fit: dict[str, float] = {}  # rooms that take messages, and when that was seen

    async def problem_of(self, room: str) -> str:
        """Return why no message can be sent to a room, or ''; raise UnansweredError."""
        if time.monotonic() - self._fit.get(room, -BELIEVED_FOR) < BELIEVED_FOR:
            return ""
        if await self._is_encrypted(room):
            return ENCRYPTED
        if await self._is_space(room):
            return A_SPACE
        self._fit[room] = time.monotonic()
        return ""

    async def contacts(self, rooms: Sequence[str]) -> AsyncIterator[Contact]:
        """Return the rooms as recipients, without spaces; raise UnansweredError."""
        for start in range(0, len(rooms), AT_ONCE):
            for contact in await asyncio.gather(*map(self._contact, rooms[start : start + AT_ONCE])):
                if contact is not None:
                    yield contact

    async def direct_among(self, rooms: set[str], own: str) -> set[str]:
        """Return the rooms with one other person; raise UnansweredError.

        Where a bridge's own user is there too, the list that the user's clients keep says so.
        """
        listed = await self._fetch("user", own, "account_data", "m.direct")
        direct = reports.direct_rooms(listed) & rooms
        others = sorted(rooms - direct)
        for start in range(0, len(others), AT_ONCE):
            some = others[start : start + AT_ONCE]
            found = await asyncio.gather(*(self._fetch("rooms", room, "joined_members") for room in some))
            pairs = zip(some, found, strict=True)
            direct |= {room for room, members in pairs if reports.others_in(members, own=own) == 1}
        return direct

    async def _contact(self, room: str) -> Contact | None:
        if await self._is_space(room):
            return None
        problem = "encrypted" if await self._is_encrypted(room) else ""
        return Contact(address=room, name=await self._name_of(room), kind="group", problem=problem)

    async def _is_encrypted(self, room: str) -> bool:
        return bool(text(await self._state(room, "m.room.encryption"), "algorithm"))

    async def _is_space(self, room: str) -> bool:
        return text(await self._state(room, "m.room.create"), "type") == SPACE

    async def _name_of(self, room: str) -> str:
        for state, field in (("m.room.name", "name"), ("m.room.canonical_alias", "alias")):
            if found := text(await self._state(room, state), field):
                return found
        return room  # a room without a name shows its members' names

    async def _state(self, room: str, kind: str) -> dict[str, Any]:
        return await self._fetch("rooms", room, "state", kind)
