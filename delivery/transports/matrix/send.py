"""Matrix, through any homeserver (client-server API v3). A bridge makes WhatsApp groups reachable as rooms too.

The homeserver remembers every transaction id of a device, so the same key never makes a second message: not after a
lost answer, nor after a restart on either side.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any, BinaryIO

from delivery.outcomes import (
    AccountBlocked,
    Outcome,
    RateLimited,
    Rejected,
    Sent,
    ServerError,
    Unknown,
    Unreachable,
)
from delivery.transports.base import (
    AccountState,
    Capabilities,
    Contact,
    CredentialField,
    Credentials,
    CredentialsError,
    Media,
    Message,
    Polled,
    UnansweredError,
    Uploaded,
    sendable,
)
from delivery.transports.http.exchange import (
    STATUSES,
    Answer,
    Request,
    Unanswered,
    below,
    gateway_url,
    nothing_sent,
)
from delivery.transports.http.reading import items, text
from delivery.transports.http.transport import HttpTransport
from delivery.transports.matrix import reports
from delivery.transports.matrix.rooms import Rooms

# About the account; every other refusal is about the room or the message.
ABOUT_THE_ACCOUNT = frozenset(
    {
        "M_UNKNOWN_TOKEN",
        "M_MISSING_TOKEN",
        "M_USER_DEACTIVATED",
        "M_USER_LOCKED",
        "M_USER_SUSPENDED",
        "M_CONSENT_NOT_GIVEN",
        "M_RESOURCE_LIMIT_EXCEEDED",
    }
)
MESSAGE_TYPES = {"image": "m.image", "video": "m.video", "audio": "m.audio"}
# Tokens of logins by password, for all transports of this process: homeservers allow few logins.
_tokens: dict[str, str] = {}


class MatrixTransport(HttpTransport):
    """One user of a homeserver. Recipients are the rooms that the user has joined."""

    kind = "matrix"
    label = "Matrix"
    about = "Rooms of a Matrix homeserver. It takes an access token, or a user and a password."
    channels = frozenset({"matrix"})
    default_capabilities = Capabilities(idempotent=True, media_handles=True, groups=True, polling=True)
    credential_fields = (
        CredentialField(
            name="base_url",
            place=True,
            session=True,
            label="Homeserver",
            help="Such as https://matrix.example.",
        ),
        CredentialField(
            name="access_token",
            label="Access token",
            secret=True,
            required=False,
            help="Better than a password.",
        ),
        CredentialField(
            name="user", session=True, label="User", required=False, help="Such as @school:matrix.example."
        ),
        CredentialField(name="password", label="Password", secret=True, required=False),
    )
    statuses = {**STATUSES, 403: Rejected}
    most_file_bytes = 50 * 10**6  # what Synapse takes unless told otherwise

    def prepare(self) -> None:
        told = self.credentials
        if not told["access_token"] and not (told["user"] and told["password"]):
            raise CredentialsError("Access token is missing, or else User and Password.")
        self._base = gateway_url(told["base_url"], label="Homeserver") / "_matrix"
        self._api = self._base / "client/v3"
        self._login = asyncio.Lock()
        self._fingerprint = hashlib.sha256("\0".join(told.values()).encode()).hexdigest()
        self._aliases: dict[str, str] = {}  # of rooms, by them
        self._rooms = Rooms(self._fetch)

    # Messages

    async def send(self, message: Message, key: str) -> Outcome:
        room = await self._room_behind(message.address)
        if not isinstance(room, str):
            return room
        unfit = await self._why_not(room)
        return unfit or await super().send(replace(message, address=room), key)

    async def _why_not(self, room: str) -> Outcome | None:
        """Return why nothing can be sent to a room, or None. Nothing was sent yet, so no outcome is in doubt."""
        try:
            problem = await self._rooms.problem_of(room)
        except UnansweredError as error:
            outcome = error.outcome
            return ServerError(reason=outcome.reason) if isinstance(outcome, Unknown) else outcome
        return Rejected(reason=problem, code="unfit_room") if problem else None

    async def _room_behind(self, address: str) -> str | Outcome:
        """Return a room's id: an alias leads to one, and a person has none."""
        if address.startswith("@"):
            return Rejected(
                reason=f"{address} is a person, and Matrix has messages in rooms only: use the room you share",
                code="not_a_room",
            )
        if not address.startswith("#"):
            return address
        if address not in self._aliases:
            answer = await self.exchange(self.request("GET", below(self._api, "directory", "room", address)))
            if not isinstance(answer, Answer):
                return nothing_sent(answer)
            if not answer.ok:
                return self.parse_failure(answer)
            self._aliases[address] = text(answer.json(), "room_id")
        return self._aliases[address]

    def build_message(self, message: Message, key: str) -> Request | Rejected:
        if message.media is not None and not message.media.handle:
            raise ValueError("Upload the media first: a homeserver sends it by its handle.")
        if message.media is not None and not str(message.media.handle).startswith("mxc://"):
            # A homeserver would take it, and nobody could open it.
            return Rejected(reason="the file has no address on a homeserver", code="bad_handle")
        url = below(self._api, "rooms", message.address, "send", "m.room.message", key)
        return self.request("PUT", url, _content(message))

    def parse_sent(self, answer: Answer) -> Outcome:
        event_id = text(answer.json(), "event_id")
        return Sent(provider_id=event_id) if event_id else self.unreadable(answer)

    def build_upload(self, media: Media, file: BinaryIO) -> Request:
        url = (self._base / "media/v3/upload").with_query(filename=media.filename)
        return Request(method="POST", url=url, headers={"Content-Type": media.content_type}, body=file)

    def parse_uploaded(self, answer: Answer) -> Uploaded | Outcome:
        handle = text(answer.json(), "content_uri")
        return Uploaded(handle=handle) if handle else self.unreadable(answer)

    def parse_failure(self, answer: Answer) -> Outcome:
        code, detail = self.describe(answer)
        if code in ABOUT_THE_ACCOUNT:
            return AccountBlocked(reason=self.said(answer, detail or code))
        outcome = super().parse_failure(answer)
        if isinstance(outcome, Rejected) and not code and answer.status in {403, 404, 405}:
            # A homeserver names every refusal; without a name, something in front of the homeserver answered.
            return Unreachable(
                reason=self.said(answer, "this is not the answer of a homeserver; check the address")
            )
        wait = answer.json().get("retry_after_ms")
        if isinstance(outcome, RateLimited) and isinstance(wait, int | float):
            return replace(outcome, after=wait / 1000)  # Retry-After has whole seconds only
        return outcome

    def describe(self, answer: Answer) -> tuple[str, str]:
        return text(answer.json(), "errcode"), text(answer.json(), "error")

    # Questions

    async def ask_state(self) -> AccountState:
        await self._own_id()
        return AccountState.WORKING

    async def recipients(self) -> AsyncIterator[Contact]:
        found = await self.ask(self.request("GET", self._api / "joined_rooms"))
        rooms = [room for room in items(found, "joined_rooms") if isinstance(room, str)]
        async for contact in self._rooms.contacts(rooms):
            yield contact

    async def poll(self, since: str) -> Polled:
        url = (self._api / "sync").with_query(reports.query(since))
        try:
            found = await self.ask(self.request("GET", url))
        except UnansweredError as error:
            if since and isinstance(error.outcome, Rejected):
                return await self.poll("")  # another homeserver's, or one that it has forgotten
            raise
        # Messages from before the first poll answer nothing that we sent.
        own = await self._own_id()
        events = reports.events(found, own=own) if since else []
        direct = await self._rooms.direct_among({event.chat for event in events}, own) if events else set()
        return Polled(events=tuple(reports.in_direct_rooms(events, direct)), since=text(found, "next_batch"))

    async def _fetch(self, *path: str) -> dict[str, Any]:
        """Return the homeserver's value there; empty where there is none, or none for us. Raises UnansweredError."""
        answer = await self.exchange(self.request("GET", below(self._api, *path)))
        if not isinstance(answer, Answer):
            raise UnansweredError(answer)
        if not answer.ok and not isinstance(failure := self.parse_failure(answer), Rejected):
            raise UnansweredError(failure)
        return answer.json() if answer.ok else {}

    async def _own_id(self) -> str:
        return text(await self.ask(self.request("GET", self._api / "account/whoami")), "user_id")

    # Logging in

    async def log_in(self) -> Credentials | None:
        """Return a token that all workers share: each login of our one device ends the login before."""
        if self.credentials["access_token"]:
            return None
        told = await self._token()
        if not isinstance(told, str):
            raise UnansweredError(self.parse_failure(told) if isinstance(told, Answer) else told)
        return {**self.credentials, "access_token": told, "password": ""}

    async def exchange(self, request: Request, *, total: float | None = None) -> Answer | Unanswered:
        """Exchange a request with a token; a token that the server has forgotten is replaced once."""
        told = await self._token()
        if not isinstance(told, str):
            return told
        answer = await super().exchange(_with(request, told), total=total)
        if not isinstance(answer, Answer) or not self._may_log_in_again(answer, told):
            return answer
        # A request without a valid token was not acted on.
        again = await self._token()
        return await super().exchange(_with(request, again), total=total) if isinstance(again, str) else again

    async def _token(self) -> str | Answer | Unanswered:
        if self.credentials["access_token"]:
            return self.credentials["access_token"]
        async with self._login:
            return _tokens.get(self._fingerprint) or await self._log_in()

    async def _log_in(self) -> str | Answer | Unanswered:
        payload = {
            "type": "m.login.password",
            "identifier": {"type": "m.id.user", "user": self.credentials["user"]},
            "password": self.credentials["password"],
            # Always the same device: transaction ids are remembered for each.
            "device_id": f"PACELINE{hashlib.sha256(self.credentials['user'].encode()).hexdigest()[:8].upper()}",
            "initial_device_display_name": "Paceline",
        }
        request = self.request("POST", self._api / "login", payload)
        answer = await super().exchange(request)
        if not isinstance(answer, Answer):
            return nothing_sent(answer)
        token = text(answer.json(), "access_token")
        if not answer.ok or not token:
            # A refused login is a 403, which for a message would be about its room.
            return replace(answer, status=401) if answer.status == 403 else answer
        _tokens[self._fingerprint] = token
        return token

    def _may_log_in_again(self, answer: Answer, token: str) -> bool:
        forgotten = answer.status == 401 and text(answer.json(), "errcode") == "M_UNKNOWN_TOKEN"
        if forgotten and _tokens.get(self._fingerprint) == token:
            del _tokens[self._fingerprint]
        return forgotten and not self.credentials["access_token"]


def _with(request: Request, token: str) -> Request:
    return replace(request, headers={**request.headers, "Authorization": f"Bearer {token}"})


def _content(message: Message) -> dict[str, Any]:
    """Return the event, as clients show it."""
    if message.media is None:
        return {"msgtype": "m.text", "body": sendable(message.text)}
    media = message.media
    return {
        "msgtype": MESSAGE_TYPES.get(media.content_type.partition("/")[0], "m.file"),
        "body": sendable(message.text) or media.filename,
        "filename": media.filename,
        "url": media.handle,
        "info": {"mimetype": media.content_type},
    }
