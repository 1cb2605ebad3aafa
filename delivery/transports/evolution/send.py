"""WhatsApp through Evolution API 2, the gateway that people run themselves (https://evolution-api.com)."""

from collections.abc import AsyncIterator, Mapping
from typing import Any, BinaryIO

from yarl import URL

from delivery.outcomes import NotConnected, Outcome, Rejected, Sent, TryAgain, Unknown
from delivery.transports.base import (
    AccountState,
    Capabilities,
    Contact,
    CredentialField,
    InboundEvent,
    Media,
    Message,
    Pairing,
    UnansweredError,
    Webhook,
    WebhookRequest,
)
from delivery.transports.evolution import reports
from delivery.transports.evolution.reports import STATES
from delivery.transports.http.downloads import download_error
from delivery.transports.http.exchange import Answer, Request, below, gateway_url
from delivery.transports.http.files import json_request_with_file
from delivery.transports.http.reading import at, items, picture, text
from delivery.transports.http.transport import HttpTransport
from delivery.transports.whatsapp.addresses import CHANNELS, QR_SECONDS, members, number

# Its words for a session that is down, in answers whose status says anything from 400 to 500.
DOWN = ("connection closed", "not connected", "does not exist", "connection lost")

# Of its check of requests: it takes no host without a dot, as `paceline` or `localhost`.
NO_ADDRESS = "media must be a url"

HELD_MS = 200  # of the time of typing, for the way of the request


class EvolutionTransport(HttpTransport):
    """One instance of an Evolution server. It takes no key."""

    kind = "evolution"
    label = "Evolution API"
    about = "WhatsApp through an Evolution API server of your own; pairs by QR code or by a code to type."
    channels = CHANNELS
    default_capabilities = Capabilities(
        media_urls=True,
        groups=True,
        pairing=True,
        pairing_code=True,
        webhooks=True,
        receipts=True,
        number_check=True,
        typing=True,
    )
    credential_fields = (
        CredentialField(
            name="base_url", place=True, session=True, label="Address", help="Such as http://127.0.0.1:8080."
        ),
        CredentialField(
            name="api_key",
            label="API key",
            secret=True,
            help="AUTHENTICATION_API_KEY of the server, which may make instances.",
        ),
        CredentialField(
            name="instance", session=True, label="Instance", help="Created if it does not exist."
        ),
    )
    proof = (
        "Evolution API sends a token with its reports from version 2.2 on, and older servers of version 2 the secret "
        "itself: connect the account again, so that the server knows the secret. Keep the clocks right."
    )
    # The server reads at most 136 MB of JSON, and base64 makes a file larger by a third.
    most_file_bytes = 100 * 10**6

    def prepare(self) -> None:
        self._instance = self.credentials["instance"]
        self._base = gateway_url(self.credentials["base_url"], label="Address")
        self.headers = {"apikey": self.credentials["api_key"]}

    # Messages

    def build_message(self, message: Message, key: str) -> Request:  # noqa: ARG002 (Evolution takes none)
        # No `delay`: the server would hold the call open for it, and the pace is set by us.
        payload = {"number": number(message.address), "text": message.text}
        return self.request("POST", self._url("message", "sendText"), payload)

    def build_with_file(self, message: Message, media: Media, key: str, file: BinaryIO) -> Request:  # noqa: ARG002
        def payload(content: str) -> Mapping[str, Any]:
            return _with_media(message, media, content)

        url = self._url("message", "sendMedia")
        return json_request_with_file(url, headers=self.headers, payload=payload, file=file)

    def build_with_address(self, message: Message, media: Media, key: str, url: str) -> Request:  # noqa: ARG002
        return self.request("POST", self._url("message", "sendMedia"), _with_media(message, media, url))

    def not_fetched(self, answer: Answer) -> str:
        told = self.describe(answer)[1]
        if answer.status == 400 and NO_ADDRESS in told.lower():
            return told
        # The server fetches the file first, and answers 500 where that fails. What fails while it sends is 400.
        name, _, words = told.partition(": ")
        return download_error(name, words) if answer.status == 500 else ""

    def parse_sent(self, answer: Answer) -> Outcome:
        provider_id = text(answer.json(), "key", "id")
        return Sent(provider_id=provider_id) if provider_id else self.unreadable(answer)

    def parse_failure(self, answer: Answer) -> Outcome:
        told = self.describe(answer)[1].lower()
        unknown = [
            each for each in items(answer.json(), "response", "message") if at(each, "exists") is False
        ]
        if unknown:
            return Rejected(reason="this number is not on WhatsApp", code="not_on_whatsapp")
        if answer.status == 404 or any(words in told for words in DOWN):
            return NotConnected(reason=f"the instance {self._instance} is not connected; pair the account")
        return super().parse_failure(answer)

    def describe(self, answer: Answer) -> tuple[str, str]:
        found = answer.json()
        # `message` is a string, a list of strings, or a list of lists of them.
        told = at(found, "response", "message") or at(found, "message")
        while isinstance(told, list) and told:
            told = told[0]
        return text(found, "error"), told if isinstance(told, str) else ""

    # The session

    async def ask_state(self) -> AccountState:
        found = await self.ask(self.request("GET", self._url("instance", "connectionState")))
        return STATES.get(text(found, "instance", "state"), AccountState.STOPPED)

    async def connect(self, webhook: Webhook | None, *, start: bool = True) -> AccountState:
        known = await self.answered_if_there(self.request("GET", self._url("instance", "connectionState")))
        if known is None and not start:
            raise UnansweredError(
                NotConnected(reason=f"the instance {self._instance} does not exist; pair the account")
            )
        if known is None:
            await self._create(webhook)
            return AccountState.PAIRING
        if webhook is not None:
            update = reports.webhook_update(webhook)
            await self.answered(self.request("POST", self._url("webhook", "set"), update))
        state = STATES.get(text(known.json(), "instance", "state"), AccountState.STOPPED)
        if start and state is AccountState.STOPPED:
            await self.answered(self.request("GET", self._url("instance", "connect")))
            return AccountState.PAIRING
        return state

    async def _create(self, webhook: Webhook | None) -> None:
        payload = {"instanceName": self._instance, "integration": "WHATSAPP-BAILEYS", "qrcode": True}
        if webhook is not None:
            payload["webhook"] = reports.webhook_of(webhook)
        await self.answered(self.request("POST", self._base / "instance" / "create", payload))

    async def disconnect(self) -> None:
        await self.answered_if_there(self.request("DELETE", self._url("instance", "logout")))

    async def pairing(self) -> Pairing | None:
        answer = await self.answered(self.request("GET", self._url("instance", "connect")))
        code, image = text(answer.json(), "code"), picture(text(answer.json(), "base64"))
        if text(answer.json(), "instance", "state") == "open":
            raise UnansweredError(Rejected(reason="it is connected already", code="connected"))
        if not code and not image:
            # It answers before WhatsApp gave it a code: {"count": 0}.
            return None
        return Pairing(code=code, image=b"" if code else image, expires_in=QR_SECONDS)

    async def pairing_code(self, phone: str) -> str:
        url = self._url("instance", "connect").with_query(number=number(phone))
        answer = await self.answered(self.request("GET", url))
        if code := text(answer.json(), "pairingCode"):
            return code
        raise UnansweredError(TryAgain(reason="the service has no code yet; try again in some seconds"))

    # Contacts

    async def check_number(self, address: str) -> bool:
        request = self.request("POST", self._url("chat", "whatsappNumbers"), {"numbers": [number(address)]})
        return any(at(each, "exists") is True for each in await self.ask_list(request))

    async def start_typing(self, address: str, seconds: float) -> None:
        # The server holds the call for `delay`, and ends the typing by itself. It marks a chat as seen only by the
        # ids of messages, which are not known here.
        payload = {"number": number(address), "presence": "composing", "delay": int(seconds * 1000) - HELD_MS}
        await self.answered(self.request("POST", self._url("chat", "sendPresence"), payload))

    async def stop_typing(self, address: str) -> None:  # noqa: ARG002 (it ended by itself)
        return

    async def recipients(self) -> AsyncIterator[Contact]:
        for row in await self._groups():
            if address := text(row, "id"):
                yield Contact(
                    address=address,
                    name=text(row, "subject") or address,
                    kind="group",
                    members=members(items(row, "participants")),
                )

    async def _groups(self) -> list[Any]:
        """Return all groups at once, since there are no pages; without members where these make the answer too long."""
        url = self._url("group", "fetchAllGroups")
        try:
            return await self.ask_list(self.request("GET", url.with_query(getParticipants="true")))
        except UnansweredError as error:
            if not isinstance(error.outcome, Unknown):
                raise
        return await self.ask_list(self.request("GET", url.with_query(getParticipants="false")))

    # Webhooks

    def parse_webhook(self, request: WebhookRequest) -> list[InboundEvent]:
        return reports.parse(request, instance=self._instance)

    def _url(self, area: str, verb: str) -> URL:
        return below(self._base, area, verb, self._instance)


def _with_media(message: Message, media: Media, content: str) -> dict[str, Any]:
    """Return a message with its file, where `content` is the file in base64 or its address."""
    return {
        "number": number(message.address),
        "mediatype": _media_type(media.content_type, caption=message.text),
        "mimetype": media.content_type,
        "caption": message.text,
        "media": content,
        "fileName": media.filename,
    }


def _media_type(content_type: str, *, caption: str) -> str:
    kind = content_type.partition("/")[0]
    # WhatsApp shows no words with sound: with a caption it goes as a document, so that none are lost.
    if kind == "audio" and not caption:
        return "audio"
    return kind if kind in {"image", "video"} else "document"
