"""WhatsApp through WAHA, the gateway that people run themselves (https://waha.devlike.pro)."""

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import Any, BinaryIO

from delivery.outcomes import NO_NEW_CHATS, NotConnected, Outcome, Rejected, Sent
from delivery.transports.base import (
    AccountState,
    Capabilities,
    Contact,
    CredentialField,
    InboundEvent,
    Media,
    Message,
    OwnLimits,
    Pairing,
    UnansweredError,
    Webhook,
    WebhookRequest,
)
from delivery.transports.http.downloads import download_error
from delivery.transports.http.exchange import Answer, Request, below, gateway_url
from delivery.transports.http.files import json_request_with_file
from delivery.transports.http.reading import at, parsed, picture, text
from delivery.transports.http.transport import HttpTransport
from delivery.transports.waha import limits, reports
from delivery.transports.waha.reports import STATES, message_id
from delivery.transports.whatsapp.addresses import (
    CHANNELS,
    NO_CHATS,
    PERSONS,
    QR_SECONDS,
    canonical,
    chat_id,
    number,
)

PAGE = 100
MOST_GROUPS = 100_000


class WahaTransport(HttpTransport):
    """One session of a WAHA server. It takes no key: a message that may have arrived is never sent again by itself."""

    kind = "waha"
    label = "WAHA"
    about = "WhatsApp through a WAHA server of your own; pairs by QR code or by a code to type."
    channels = CHANNELS
    default_capabilities = Capabilities(
        media_urls=True,
        groups=True,
        pairing=True,
        pairing_code=True,
        webhooks=True,
        receipts=True,
        number_check=True,
        hidden_numbers=True,
        typing=True,
        own_limits=True,
    )
    credential_fields = (
        CredentialField(
            name="base_url", place=True, session=True, label="Address", help="Such as http://127.0.0.1:3000."
        ),
        CredentialField(name="api_key", label="API key", secret=True, help="WAHA_API_KEY of the server."),
        CredentialField(
            name="session",
            session=True,
            label="Session",
            default="default",
            help="Created if it does not exist.",
        ),
    )
    proof = (
        "WAHA signs its reports from version 2024.11.5 on: update an older server, then connect the account again. "
        "Keep the clocks of both machines right."
    )
    # The server reads at most 50 MB of JSON, and base64 makes a file larger by a third.
    most_file_bytes = 36 * 10**6

    def prepare(self) -> None:
        self._name = self.credentials["session"]
        self._api = gateway_url(self.credentials["base_url"], label="Address") / "api"
        self._session_url = below(self._api, "sessions", self._name)
        # Without the second it would send pictures of codes as they are.
        self.headers = {"X-Api-Key": self.credentials["api_key"], "Accept": "application/json"}

    # Messages

    def build_message(self, message: Message, key: str) -> Request:  # noqa: ARG002 (WAHA takes none)
        payload = {**self._to(message), "text": message.text}
        return self.request("POST", self._api / "sendText", payload)

    def build_with_file(self, message: Message, media: Media, key: str, file: BinaryIO) -> Request:  # noqa: ARG002
        def payload(content: str) -> Mapping[str, Any]:
            return self._with_file(message, media, data=content)

        url = self._api / _method(media.content_type)
        return json_request_with_file(url, headers=self.headers, payload=payload, file=file)

    def build_with_address(self, message: Message, media: Media, key: str, url: str) -> Request:  # noqa: ARG002
        payload = self._with_file(message, media, url=url)
        return self.request("POST", self._api / _method(media.content_type), payload)

    def _with_file(self, message: Message, media: Media, **content: str) -> dict[str, Any]:
        file = {"mimetype": media.content_type, "filename": media.filename, **content}
        shown = {"asNote": False} if _method(media.content_type) == "sendVideo" else {}
        return {**self._to(message), "caption": message.text, "file": file, **shown}

    def not_fetched(self, answer: Answer) -> str:
        told = self.describe(answer)[1]
        if (
            answer.status == 400 and "url" in told.lower()
        ):  # of its check of requests, before it does anything
            return told
        # WAHA fetches the file before it hands anything to WhatsApp. Each engine does so with a library of its own,
        # and its error comes as it is; after the fetch none of these libraries is used.
        if answer.status != 500:
            return ""
        exception = at(answer.json(), "exception")
        return download_error(text(exception, "name"), text(exception, "message"))

    def _to(self, message: Message) -> dict[str, str]:
        return {"session": self._name, "chatId": chat_id(message.address, person="@c.us")}

    def parse_sent(self, answer: Answer) -> Outcome:
        found = answer.json()
        # Each engine inside WAHA answers in a shape of its own.
        told = text(found, "id") or text(found, "id", "_serialized") or text(found, "key", "id")
        return Sent(provider_id=message_id(told)) if told else self.unreadable(answer)

    def parse_failure(self, answer: Answer) -> Outcome:
        found = answer.json()
        # 404 is a session that is not there, 422 with a status one in the wrong state; another 422 is a request
        # that WAHA will never take, such as media on an edition without them.
        if answer.status == 404 or (answer.status == 422 and text(found, "status")):
            state = text(found, "status") or "not there"
            return NotConnected(reason=f"the session {self._name} is {state}; pair the account")
        # The only failure of the engine that is certain: WhatsApp's own server said no.
        said = text(found, "exception", "message")
        for code in sorted(NO_NEW_CHATS):
            if re.search(rf"\berror {code}\b", said):
                return Rejected(reason=NO_CHATS[code], code=code)
        return super().parse_failure(answer)

    def describe(self, answer: Answer) -> tuple[str, str]:
        found = answer.json()
        told = text(found, "message") or text(found, "message", 0) or text(found, "exception", "message")
        return text(found, "error"), told

    # The session

    async def ask_state(self) -> AccountState:
        found = await self.ask(self.request("GET", self._session_url))
        return STATES.get(text(found, "status"), AccountState.STOPPED)

    async def connect(self, webhook: Webhook | None, *, start: bool = True) -> AccountState:
        known = await self.answered_if_there(self.request("GET", self._session_url))
        if known is None and not start:
            raise UnansweredError(
                NotConnected(reason=f"the session {self._name} does not exist; pair the account")
            )
        told = at(known.json(), "config") if known else None
        config = reports.config(told, webhook)
        if known is None:
            payload = {"name": self._name, "start": True, "config": config}
            found = await self.ask(self.request("POST", self._api / "sessions", payload))
        elif webhook is not None and not reports.reports_already(told, webhook):
            # Restarts the session, so only where there is something new to say.
            found = await self.ask(self.request("PUT", self._session_url, {"config": config}))
        else:
            found = known.json()
        if start and text(found, "status") in {"STOPPED", "FAILED"}:
            found = await self.ask(self.request("POST", self._session_url / "restart"))
        # A session that was just started shows its code in a moment, or reconnects without one.
        return STATES.get(text(found, "status"), AccountState.STARTING)

    async def disconnect(self) -> None:
        await self.answered_if_there(self.request("POST", self._session_url / "logout"))

    async def pairing(self) -> Pairing | None:
        url = below(self._api, self._name, "auth", "qr").with_query(format="raw")
        answer = await self.exchange(self.request("GET", url))
        if not isinstance(answer, Answer):
            raise UnansweredError(answer)
        if self._is_starting(answer):
            return None
        if not answer.ok:
            raise UnansweredError(self.parse_failure(answer))
        # Older servers know no other format than the picture.
        code, image = text(answer.json(), "value"), picture(text(answer.json(), "data"))
        if not code and not image:
            raise UnansweredError(self.unreadable(answer))
        return Pairing(code=code, image=image, expires_in=QR_SECONDS)

    def _is_starting(self, answer: Answer) -> bool:
        """Return whether the session is still starting, so that its code will come."""
        return answer.status == 422 and STATES.get(text(answer.json(), "status")) is AccountState.STARTING

    async def pairing_code(self, phone: str) -> str:
        url = below(self._api, self._name, "auth", "request-code")
        return await self.ask_for(self.request("POST", url, {"phoneNumber": number(phone)}), "code")

    # Contacts

    async def check_number(self, address: str) -> bool:
        query = {"phone": number(address), "session": self._name}
        found = await self.ask(
            self.request("GET", (self._api / "contacts" / "check-exists").with_query(query))
        )
        return at(found, "numberExists") is True

    async def start_typing(self, address: str, seconds: float) -> None:  # noqa: ARG002 (WAHA is told when it ends)
        # Not `presence`, which would also show the account as online and silence its phone.
        with suppress(UnansweredError):  # some engines want the ids of messages; typing is shown all the same
            await self.answered(self._in_chat("sendSeen", address))
        await self.answered(self._in_chat("startTyping", address))

    async def stop_typing(self, address: str) -> None:
        await self.answered(self._in_chat("stopTyping", address))

    def _in_chat(self, verb: str, address: str) -> Request:
        chat = {"session": self._name, "chatId": chat_id(address, person="@c.us")}
        return self.request("POST", self._api / verb, chat)

    async def number_behind(self, hidden: str) -> str:
        # Servers that do not know the question yet, or the address, answer 404.
        answer = await self.answered_if_there(
            self.request("GET", below(self._api, self._name, "lids", hidden))
        )
        number_ = text(answer.json(), "pn") if answer else ""
        return canonical(number_) if number_.endswith(PERSONS) else ""

    async def own_limits(self) -> OwnLimits:
        # Both are new in 2026.8.1, and each engine has them or not: what is missing is not known.
        answers = {name: await self._told(name) for name in ("capping", "timelock")}
        return limits.read(answers["capping"], answers["timelock"])

    async def _told(self, name: str) -> object:
        """Return the service's answer to a question about the session; None where it does not know the question."""
        try:
            return parsed((await self.answered(self.request("GET", self._session_url / name))).body)
        except UnansweredError as error:
            if error.silent:
                raise
            return None

    async def recipients(self) -> AsyncIterator[Contact]:
        seen: set[str] = set()
        for offset in range(0, MOST_GROUPS, PAGE):
            url = below(self._api, self._name, "groups").with_query(
                limit=PAGE, offset=offset, sortBy="subject", sortOrder="asc"
            )
            answer = await self.answered(self.request("GET", url))
            new = [contact for contact in reports.groups(answer.body) if contact.address not in seen]
            for contact in new:
                seen.add(contact.address)
                yield contact
            # Some engines give all groups at once, whatever was asked for.
            if len(new) != PAGE:
                return

    # Webhooks

    def parse_webhook(self, request: WebhookRequest) -> list[InboundEvent]:
        return reports.parse(request, session=self._name)


def _method(content_type: str) -> str:
    """Return the method for a file: WhatsApp shows images and MP4; voice must be Opus, so sound goes as a file."""
    if content_type.startswith("image/"):
        return "sendImage"
    return "sendVideo" if content_type == "video/mp4" else "sendFile"
