"""WhatsApp through Meta's own Cloud API: official, for persons, and by Meta's rules."""

from collections.abc import Mapping
from typing import Any, BinaryIO

from delivery.outcomes import Outcome, Rejected, Sent
from delivery.transports.base import (
    AccountState,
    Capabilities,
    CredentialField,
    InboundEvent,
    Media,
    MediaRef,
    Message,
    OwnLimits,
    UnansweredError,
    Uploaded,
    WebhookRequest,
)
from delivery.transports.cloud_api import errors, limits, reports
from delivery.transports.http.exchange import Answer, Request, below, gateway_url
from delivery.transports.http.files import form_request
from delivery.transports.http.reading import at, text
from delivery.transports.http.transport import HttpTransport
from delivery.transports.whatsapp.addresses import CHANNELS, number

# Other types are sent as documents; WhatsApp would show them no better.
IMAGES = frozenset({"image/jpeg", "image/png"})
VIDEOS = frozenset({"video/mp4", "video/3gpp"})
SOUNDS = frozenset({"audio/aac", "audio/amr", "audio/mpeg", "audio/mp4", "audio/ogg"})
# Meta's names for a number's state; FLAGGED and RATE_LIMITED still send.
STATES = {
    "DISCONNECTED": AccountState.STOPPED,
    "PENDING": AccountState.STOPPED,
    "MIGRATED": AccountState.STOPPED,
    "DELETED": AccountState.BLOCKED,
    "BANNED": AccountState.BLOCKED,
    "RESTRICTED": AccountState.BLOCKED,
}


class CloudApiTransport(HttpTransport):
    """One phone number of a WhatsApp Business account. It takes no key, and knows no groups that we could list."""

    kind = "cloud_api"
    label = "WhatsApp Cloud API"
    about = "Meta's own WhatsApp service: only to persons, with templates for people who did not write first."
    channels = CHANNELS
    default_capabilities = Capabilities(media_handles=True, webhooks=True, receipts=True, own_limits=True)
    credential_fields = (
        CredentialField(
            name="phone_id", session=True, label="Phone number ID", help="Not the number: Meta's id for it."
        ),
        CredentialField(
            name="token", label="Access token", secret=True, help="Of a system user; it never expires."
        ),
        CredentialField(
            name="app_secret",
            label="App secret",
            secret=True,
            required=False,
            help="Under App settings, Basic. Without it, replies and receipts are ignored.",
        ),
        CredentialField(
            name="template",
            label="Template",
            required=False,
            help="An approved template whose body has one variable, the message. Empty sends plain texts, which "
            "reach only those who wrote within 24 hours.",
        ),
        CredentialField(name="language", label="Language of the template", required=False, default="en"),
        CredentialField(
            name="base_url", place=True, label="Address", default="https://graph.facebook.com/v23.0"
        ),
    )

    proof = (
        "Meta signs its reports with the app secret: check that App secret under Edit is the one of your app."
    )

    def prepare(self) -> None:
        self._phone = below(
            gateway_url(self.credentials["base_url"], label="Address"), self.credentials["phone_id"]
        )
        self.headers = {"Authorization": f"Bearer {self.credentials['token']}"}

    # Messages

    def build_message(self, message: Message, key: str) -> Request | Rejected:  # noqa: ARG002 (Meta takes none)
        if "@" in message.address:
            return Rejected(
                reason="the Cloud API writes to phone numbers only, not to groups", code="no_phone"
            )
        payload = {
            "messaging_product": "whatsapp",
            "recipient_type": "individual",
            "to": number(message.address),
            **self._content(message),
        }
        return self.request("POST", self._phone / "messages", payload)

    def _content(self, message: Message) -> dict[str, Any]:
        if message.media is not None:
            return _media(message, message.media)
        if self.credentials["template"]:
            return self._template(message.text)
        return {"type": "text", "text": {"body": message.text, "preview_url": False}}

    def _template(self, words: str) -> dict[str, Any]:
        # A variable may hold no line breaks, no tabs and no more than four spaces in a row.
        parameters = [{"type": "text", "text": " ".join(words.split())}]
        template = {
            "name": self.credentials["template"],
            "language": {"policy": "deterministic", "code": self.credentials["language"]},
            "components": [{"type": "body", "parameters": parameters}],
        }
        return {"type": "template", "template": template}

    def parse_sent(self, answer: Answer) -> Outcome:
        provider_id = text(answer.json(), "messages", 0, "id")
        return Sent(provider_id=provider_id) if provider_id else self.unreadable(answer)

    def build_upload(self, media: Media, file: BinaryIO) -> Request:
        fields = {"messaging_product": "whatsapp", "type": media.content_type}
        return form_request(
            self._phone / "media", headers=self.headers, fields=fields, media=media, file=file
        )

    def parse_uploaded(self, answer: Answer) -> Uploaded | Outcome:
        handle = text(answer.json(), "id")  # good for 30 days
        return Uploaded(handle=handle) if handle else self.unreadable(answer)

    def parse_failure(self, answer: Answer) -> Outcome:
        code = at(answer.json(), "error", "code")
        said = self.said(answer, self.describe(answer)[1])
        known = errors.outcome(code, said) if isinstance(code, int) else None
        return known or super().parse_failure(answer)

    def describe(self, answer: Answer) -> tuple[str, str]:
        error = at(answer.json(), "error")
        code = at(error, "code")
        detail = text(error, "error_data", "details") or text(error, "message")
        return str(code) if isinstance(code, int) else "", detail

    # The account

    async def ask_state(self) -> AccountState:
        url = self._phone.with_query(fields="id,status,quality_rating")
        found = await self.ask(self.request("GET", url))
        return STATES.get(text(found, "status"), AccountState.WORKING)

    async def own_limits(self) -> OwnLimits:
        # The second is the older name; a version that does not know a name refuses the question.
        told: dict[str, object] = {}
        for name in limits.FIELDS:
            try:
                found = await self.ask(self.request("GET", self._phone.with_query(fields=name)))
            except UnansweredError as error:
                if error.silent:
                    raise
                continue
            if name in found:
                told = {name: found[name]}
                break
        return limits.read(told)

    # Webhooks

    def parse_webhook(self, request: WebhookRequest) -> list[InboundEvent]:
        secret = self.credentials["app_secret"]
        return reports.parse(request, phone_id=self.credentials["phone_id"], app_secret=secret)

    def webhook_challenge(self, query: Mapping[str, str], secret: str) -> str:
        return reports.challenge(query, secret)


def _media(message: Message, media: MediaRef) -> dict[str, Any]:
    if not media.handle:
        raise ValueError("Upload the media first: the Cloud API sends it by its id.")
    kind = _kind(media.content_type, caption=message.text)
    content = {"id": media.handle}
    if message.text:
        content["caption"] = message.text
    if kind == "document":
        content["filename"] = media.filename
    return {"type": kind, kind: content}


def _kind(content_type: str, *, caption: str) -> str:
    if content_type in IMAGES:
        return "image"
    if content_type in VIDEOS:
        return "video"
    # Sound takes no caption: with one it goes as a document, so that no words are lost.
    return "audio" if content_type in SOUNDS and not caption else "document"
