"""WhatsApp through Wassenger, a paid service that runs the session for you (https://wassenger.com)."""

from collections.abc import AsyncIterator, Mapping
from datetime import timedelta
from typing import Any, BinaryIO, ClassVar

from delivery.outcomes import NotConnected, Outcome, RateLimited, Sent
from delivery.transports.base import (
    AccountState,
    Capabilities,
    Contact,
    CredentialField,
    InboundEvent,
    Media,
    Message,
    Uploaded,
    WebhookRequest,
)
from delivery.transports.http.exchange import STATUSES, Answer, Failure, Request, below, gateway_url
from delivery.transports.http.files import form_request
from delivery.transports.http.reading import at, parsed, text
from delivery.transports.http.transport import HttpTransport
from delivery.transports.wassenger import reports
from delivery.transports.wassenger.reports import state
from delivery.transports.whatsapp.addresses import CHANNELS

PAGE = 100
MOST_GROUPS = 100_000
# What its documentation asks for where the answer names no wait.
WAITS = {RateLimited: timedelta(minutes=1), NotConnected: timedelta(seconds=20)}


class WassengerTransport(HttpTransport):
    """One device of a Wassenger account. Numbers are connected in Wassenger's own console."""

    kind = "wassenger"
    label = "Wassenger"
    about = "WhatsApp through Wassenger's cloud: nothing to run, the number is connected in its console."
    channels = CHANNELS
    default_capabilities = Capabilities(
        media_handles=True, groups=True, webhooks=True, receipts=True, number_check=True
    )
    credential_fields = (
        CredentialField(name="token", label="API key", secret=True, help="From Wassenger's developer page."),
        CredentialField(
            name="device", session=True, label="Device", help="The id of the connected number, 24 characters."
        ),
        CredentialField(
            name="webhook_secret",
            label="Webhook secret",
            secret=True,
            required=False,
            help="Shown by Wassenger when the webhook is made. Without it, replies and receipts are ignored.",
        ),
        CredentialField(name="base_url", place=True, label="Address", default="https://api.wassenger.com"),
    )
    proof = "Wassenger signs its reports with the webhook's secret: check Webhook secret under Edit."
    statuses: ClassVar[Mapping[int, Failure]] = {
        **STATUSES,
        409: NotConnected,  # the device is not ready, or used elsewhere
        503: NotConnected,  # the device is offline
    }

    def prepare(self) -> None:
        self._api = gateway_url(self.credentials["base_url"], label="Address") / "v1"
        self._device = below(self._api, "devices", self.credentials["device"])
        self.headers = {"Token": self.credentials["token"]}

    # Messages

    def build_message(self, message: Message, key: str) -> Request:
        to = "group" if message.address.endswith("@g.us") else "phone"
        # Wassenger repeats the reference in its reports, and sends a second message with it all the same.
        payload: dict[str, Any] = {
            "device": self.credentials["device"],
            to: message.address,
            "message": message.text,
            "reference": key,
        }
        if message.media is not None:
            if not message.media.handle:
                raise ValueError("Upload the media first: Wassenger sends it by its id.")
            payload["media"] = {"file": message.media.handle}
        return self.request("POST", self._api / "messages", payload)

    def parse_sent(self, answer: Answer) -> Outcome:
        provider_id = text(answer.json(), "id")
        return Sent(provider_id=provider_id) if provider_id else self.unreadable(answer)

    def build_upload(self, media: Media, file: BinaryIO) -> Request:
        return form_request(self._api / "files", headers=self.headers, fields={}, media=media, file=file)

    def parse_uploaded(self, answer: Answer) -> Uploaded | Outcome:
        found = parsed(answer.body)
        handle = text(found, "id") or text(found, 0, "id")  # a list of one, as a rule
        return Uploaded(handle=handle) if handle else self.unreadable(answer)

    def parse_failed_upload(self, answer: Answer) -> Uploaded | Outcome:
        # A file that Wassenger has already is a conflict, and the answer names it.
        known = text(answer.json(), "meta", "file")
        return Uploaded(handle=known) if answer.status == 409 and known else self.parse_failure(answer)

    def parse_failure(self, answer: Answer) -> Outcome:
        outcome = super().parse_failure(answer)
        if isinstance(outcome, RateLimited | NotConnected) and outcome.after is None:
            return type(outcome)(after=WAITS[type(outcome)].total_seconds(), reason=outcome.reason)
        return outcome

    def describe(self, answer: Answer) -> tuple[str, str]:
        found = answer.json()
        return text(found, "errorCode"), text(found, "message")

    # The account and its contacts

    async def ask_state(self) -> AccountState:
        return state(await self.ask(self.request("GET", self._device)))

    async def check_number(self, address: str) -> bool:
        url, payload = self._api / "numbers" / "exists", {"phone": address}
        found = await self.ask(self.request("POST", url, payload))
        return at(found, "exists") is True

    async def recipients(self) -> AsyncIterator[Contact]:
        for page in range(MOST_GROUPS // PAGE):
            url = (self._device / "groups").with_query(size=PAGE, page=page)
            rows = await self.ask_list(self.request("GET", url))
            for row in rows:
                if address := text(row, "wid") or text(row, "id"):
                    yield Contact(address=address, name=text(row, "name") or address, kind="group")
            if len(rows) < PAGE:
                return

    # Webhooks

    def parse_webhook(self, request: WebhookRequest) -> list[InboundEvent]:
        # It makes the secret itself, so ours is of no use.
        secret = self.credentials["webhook_secret"]
        return reports.parse(request, device=self.credentials["device"], secret=secret)
