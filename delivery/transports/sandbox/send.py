"""The practice gateway that comes with Paceline (`python -m sandbox`); docs/sandbox.md describes it."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Any, BinaryIO
from urllib.parse import quote

from delivery.outcomes import NEW_CHATS_USED_UP, NotConnected, Outcome, Rejected, Sent, ServerError
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
    Uploaded,
    Webhook,
    WebhookRequest,
)
from delivery.transports.http.exchange import STATUSES, Answer, Request, below, gateway_url, json_request
from delivery.transports.http.files import json_request_with_file
from delivery.transports.http.transport import HttpTransport
from delivery.transports.sandbox.reports import STATES, reported, told_limits

PAGE = 500
MOST_GROUPS = 100_000
USED_UP = "new_chats_used_up"  # as WhatsApp's 475


class SandboxTransport(HttpTransport):
    """The sandbox. A credential decides whether it offers idempotency, to practise both cases."""

    kind = "sandbox"
    label = "Sandbox"
    about = "The practice gateway that comes with Paceline. Nothing leaves this machine."
    channels = frozenset({"whatsapp"})
    default_capabilities = Capabilities(
        idempotent=True,
        media_handles=True,
        groups=True,
        pairing=True,
        pairing_code=True,
        webhooks=True,
        receipts=True,
        number_check=True,
        typing=True,
        own_limits=True,
    )
    credential_fields = (
        CredentialField(name="base_url", place=True, label="Address", default="http://127.0.0.1:8081"),
        CredentialField(
            name="account", label="Account", help="Any name. The account is created when first used."
        ),
        CredentialField(
            name="token", label="Token", secret=True, help="The first one used becomes the account's."
        ),
        CredentialField(
            name="idempotent",
            label="Idempotency keys",
            default="yes",
            choices=(("yes", "Honoured: sending again is safe"), ("no", "Ignored, as by most gateways")),
        ),
        CredentialField(
            name="pairing",
            label="Pairing",
            default="no",
            choices=(("no", "Connected at once"), ("yes", "By scanning a code, to practise it")),
            help="The code is scanned on the sandbox's own page.",
        ),
        CredentialField(
            name="files",
            label="Files",
            default="uploaded",
            choices=(
                ("uploaded", "Uploaded once per run"),
                ("fetched", "Fetched by their address for each message, or inside it"),
            ),
        ),
    )

    statuses = {**STATUSES, 503: NotConnected}  # the sandbox's word for a phone that is not connected

    def prepare(self) -> None:
        base = gateway_url(self.credentials["base_url"], label="Address")
        self._api = below(base, "api", self.credentials["account"])
        self._messages = self._api / "messages"
        self.headers = {"Authorization": f"Bearer {self.credentials['token']}"}
        self._idempotent = self.credentials["idempotent"] != "no"
        fetches = self.credentials["files"] == "fetched"
        self._capabilities = replace(
            self.default_capabilities,
            idempotent=self._idempotent,
            media_handles=not fetches,
            media_urls=fetches,
        )

    @property
    def capabilities(self) -> Capabilities:
        return self._capabilities

    def build_message(self, message: Message, key: str) -> Request:
        if message.media is None:
            content = {"text": message.text}
        else:
            content = {"media": _handle(message), "caption": message.text}
        payload = self._payload(message, key, content)
        return json_request("POST", self._messages, headers=self._keyed(key), payload=payload)

    def build_with_file(self, message: Message, media: Media, key: str, file: BinaryIO) -> Request:
        def payload(content: str) -> Mapping[str, Any]:
            return self._payload(message, key, _content(message, media, data=content))

        return json_request_with_file(self._messages, headers=self._keyed(key), payload=payload, file=file)

    def build_with_address(self, message: Message, media: Media, key: str, url: str) -> Request:
        payload = self._payload(message, key, _content(message, media, url=url))
        return json_request("POST", self._messages, headers=self._keyed(key), payload=payload)

    def _payload(self, message: Message, key: str, content: Mapping[str, Any]) -> dict[str, Any]:
        # A reference is written to the sandbox's log, and never makes a message go out only once.
        reference = {} if self._idempotent else {"reference": key}
        return {"to": message.address, **content, **reference}

    def _keyed(self, key: str) -> Mapping[str, str]:
        return {**self.headers, "Idempotency-Key": key} if self._idempotent else self.headers

    def not_fetched(self, answer: Answer) -> str:
        code, words = self.describe(answer)
        return words if answer.status == 424 and code == "file_not_fetched" else ""

    def parse_sent(self, answer: Answer) -> Outcome:
        provider_id = answer.json().get("id")
        return Sent(provider_id=provider_id) if isinstance(provider_id, str) else self.unreadable(answer)

    def build_upload(self, media: Media, file: BinaryIO) -> Request:
        headers = {
            **self.headers,
            "Content-Type": media.content_type,
            "X-Filename": quote(media.filename),  # a header holds ASCII only
        }
        return Request(method="POST", url=self._api / "media", headers=headers, body=file)

    def parse_uploaded(self, answer: Answer) -> Uploaded | Outcome:
        handle = answer.json().get("handle")
        return Uploaded(handle=handle) if isinstance(handle, str) else self.unreadable(answer)

    def parse_failure(self, answer: Answer) -> Outcome:
        # A 500 that says that nothing was accepted is no reason for doubt.
        if answer.status == 500 and answer.json().get("accepted") is False:
            return ServerError(reason=self.said(answer, self.describe(answer)[1]))
        code, words = self.describe(answer)
        if code == USED_UP:
            return Rejected(reason=self.said(answer, words), code=NEW_CHATS_USED_UP)
        return super().parse_failure(answer)

    async def ask_state(self) -> AccountState:
        found = await self.ask(self.request("GET", self._api / "status"))
        return STATES.get(str(found.get("state")), AccountState.STOPPED)

    async def recipients(self) -> AsyncIterator[Contact]:
        for offset in range(0, MOST_GROUPS, PAGE):
            url = (self._api / "groups").with_query(limit=PAGE, offset=offset)
            groups = (await self.ask(self.request("GET", url))).get("groups", [])
            for group in groups:
                yield Contact(address=str(group["id"]), name=str(group["name"]), kind="group")
            if len(groups) < PAGE:
                return

    async def connect(self, webhook: Webhook | None, *, start: bool = True) -> AccountState:  # noqa: ARG002
        wishes: dict[str, Any] = {"pair": self.credentials["pairing"] == "yes"}
        if webhook is not None:
            wishes["webhook"] = {"url": webhook.url, "secret": webhook.secret}
        request = self.request("PUT", self._api / "session", wishes)
        return STATES.get(str((await self.ask(request)).get("state")), AccountState.STOPPED)

    async def disconnect(self) -> None:
        await self.answered(self.request("DELETE", self._api / "session"))

    async def pairing(self) -> Pairing:
        found = await self.ask(self.request("GET", self._api / "qr"))
        return Pairing(
            code=str(found.get("code", "")), expires_in=float(found.get("expires_in_ms", 0)) / 1000
        )

    async def pairing_code(self, phone: str) -> str:
        request = self.request("POST", self._api / "pairing-code", {"phone": phone})
        return str((await self.ask(request)).get("code", ""))

    async def check_number(self, address: str) -> bool:
        url = (self._api / "numbers").joinpath(quote(address, safe=""), encoded=True)
        return (await self.ask(self.request("GET", url))).get("exists") is True

    async def start_typing(self, address: str, seconds: float) -> None:  # noqa: ARG002 (it is told when it ends)
        await self._show(address, "seen")
        await self._show(address, "typing")

    async def stop_typing(self, address: str) -> None:
        await self._show(address, "paused")

    async def own_limits(self) -> OwnLimits:
        return told_limits(await self.ask(self.request("GET", self._api / "new-chats")))

    async def _show(self, address: str, state: str) -> None:
        await self.answered(self.request("POST", self._api / "typing", {"to": address, "state": state}))

    def parse_webhook(self, request: WebhookRequest) -> list[InboundEvent]:
        return reported(request)


def _content(message: Message, media: Media, **content: str) -> dict[str, Any]:
    file = {"filename": media.filename, "content_type": media.content_type, **content}
    return {"caption": message.text, "file": file}


def _handle(message: Message) -> str:
    if message.media is None or not message.media.handle:
        raise ValueError("Upload the media first: the sandbox sends it by its handle.")
    return message.media.handle
