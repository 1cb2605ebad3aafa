"""E-mail through a provider's HTTP API.

anymail knows each provider's requests and answers; the HTTP exchange is ours (`http/`), so that a provider has the
same timeouts and outcomes as every other service (docs/decisions/0011-e-mail.md).
"""

import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, BinaryIO

import requests
from anymail.exceptions import AnymailError
from yarl import URL

from delivery.outcomes import AccountBlocked, Outcome, Rejected, Sent
from delivery.transports.base import (
    AccountState,
    Capabilities,
    CredentialField,
    CredentialsError,
    InboundEvent,
    Media,
    Message,
    WebhookRequest,
)
from delivery.transports.email_provider import reports
from delivery.transports.email_provider.providers import PROVIDERS, WORDS
from delivery.transports.http.exchange import Answer, Request, gateway_url
from delivery.transports.http.reading import items, text
from delivery.transports.http.transport import HttpTransport
from delivery.transports.mail.composing import SENDER_FIELDS, Mail, Sender


@dataclass(frozen=True, slots=True, kw_only=True)
class MailRequest(Request):
    """A request with what anymail needs to read the answer."""

    mail: Mail = field(repr=False)
    payload: Any = field(repr=False)


class EmailProviderTransport(HttpTransport):
    """E-mail through a provider; a credential says which one."""

    kind = "email_provider"
    label = "E-mail (provider)"
    about = "A service for sending e-mail, such as Mailgun or Postmark. It takes a key and a verified sender."
    channels = frozenset({"email"})
    default_capabilities = Capabilities(webhooks=True, receipts=True, actions=frozenset({"email"}))
    signs_in_as = reports.USER
    proof = (
        "Copy the whole address to your provider: it has a name and a secret in it. "
        "If your provider cannot take these, enter its signing key under Edit."
    )
    credential_fields = (
        CredentialField(
            name="provider",
            place=True,
            label="Provider",
            choices=tuple((each.name, each.label) for each in PROVIDERS.values()),
        ),
        CredentialField(name="key", label="Key", secret=True, help="The provider's API key or server token."),
        CredentialField(
            name="second_key",
            label="Second key",
            secret=True,
            required=False,
            help="Of Mailjet: the secret key.",
        ),
        CredentialField(
            name="api_url",
            place=True,
            label="Address",
            required=False,
            help="Where not the usual one, as https://api.eu.mailgun.net/v3 in Europe.",
        ),
        CredentialField(
            name="signing_key",
            label="Signing key of reports",
            secret=True,
            required=False,
            help="Of Mailgun, MailerSend and Resend, which sign their reports.",
        ),
        *SENDER_FIELDS,
    )
    most_file_bytes = 25 * 10**6

    def prepare(self) -> None:
        self._provider = PROVIDERS[self.credentials["provider"]]
        self._sender = Sender(self.credentials, shows_pictures=self._provider.shows_pictures)
        self._backend = self._made()

    def build_message(self, message: Message, key: str) -> Request | Rejected:
        return self._request(message, key, b"")

    def build_with_file(self, message: Message, media: Media, key: str, file: BinaryIO) -> Request | Rejected:  # noqa: ARG002
        return self._request(message, key, file.read())

    def parse_sent(self, answer: Answer) -> Outcome:
        assert isinstance(answer.request, MailRequest)  # noqa: S101 - for types: `_request` made it
        mail, payload = answer.request.mail, answer.request.payload
        try:
            told = self._backend.parse_recipient_status(_as_response(answer), payload, mail)
        except (AnymailError, KeyError, TypeError):
            return self.unreadable(answer)
        status = told[mail.to[0]]
        if status.status in {"invalid", "rejected", "failed"}:
            return Rejected(reason=f"{self._provider.label} refused the recipient", code=status.status)
        # An answer that names no recipient leaves the status open.
        if status.status not in {"sent", "queued"} and not status.message_id:
            return self.unreadable(answer)
        return Sent(provider_id=status.message_id or "")

    def parse_failure(self, answer: Answer) -> Outcome:
        # Mandrill's word for a wrong key; anybody else's 500 may have sent the message.
        if answer.status == 500 and answer.json().get("name") == "Invalid_Key":
            return AccountBlocked(reason=self.said(answer, "the key is not valid"))
        return super().parse_failure(answer)

    def describe(self, answer: Answer) -> tuple[str, str]:
        """Return the provider's own words for a failure, whatever field holds them."""
        found = answer.json()
        first = next(iter(items(found, "errors")), None)
        words = [text(each, name) for each in (found, first) for name in WORDS]
        return "", next(filter(None, words), "")

    async def status(self) -> AccountState:
        """Return the state, asked at the address for messages: a key may be allowed to send and nothing else."""
        probe = self._request(Message(address=self._sender.address, kind="text", text="?"), "status", b"")
        assert isinstance(probe, Request)  # noqa: S101 - for types: the sender's address was checked
        answer = await self.exchange(Request(method="GET", url=probe.url, headers=_only_keys(probe.headers)))
        self.silent = not isinstance(answer, Answer)
        if not isinstance(answer, Answer):
            self.why = answer.reason
            return AccountState.UNREACHABLE
        refused, failed = answer.status == 401, answer.status >= 500
        self.why = self.said(answer, self.describe(answer)[1]) if refused or failed else ""
        if failed and not isinstance(self.parse_failure(answer), AccountBlocked):
            return AccountState.UNREACHABLE
        return AccountState.BLOCKED if refused or failed else AccountState.WORKING

    def parse_webhook(self, request: WebhookRequest) -> list[InboundEvent]:
        return reports.parse(
            request,
            provider=self._provider.name,
            signing_key=self.credentials["signing_key"],
            copy_to=self._sender.copy_to,
        )

    def _request(self, message: Message, key: str, content: bytes) -> Request | Rejected:
        mail = self._sender.compose(message, key, content)
        if isinstance(mail, Rejected):
            return mail
        del mail.extra_headers["Date"]
        if not self._provider.keeps_message_id:
            del mail.extra_headers["Message-ID"]
        mail.extra_headers |= dict(self._provider.headers)
        try:
            payload = self._backend.build_message_payload(mail, self._backend.send_defaults)
        except AnymailError:
            return Rejected(reason=f"{self._provider.label} cannot send such a message", code="unsupported")
        prepared = requests.Request(**payload.get_request_params(self._backend.api_url)).prepare()
        return MailRequest(
            method=str(prepared.method),
            url=URL(str(prepared.url), encoded=True),
            headers={name: str(value) for name, value in prepared.headers.items()},
            body=_as_file(prepared.body),
            mail=mail,
            payload=payload,
        )

    def _made(self) -> Any:
        provider = self._provider
        options = {provider.key: self.credentials["key"]}
        if provider.second_key:
            if not self.credentials["second_key"]:
                raise CredentialsError("Second key is missing.")
            options[provider.second_key] = self.credentials["second_key"]
        if self.credentials["api_url"]:
            options["api_url"] = str(gateway_url(self.credentials["api_url"], label="Address"))
        return import_module(f"anymail.backends.{provider.name}").EmailBackend(**options)


def _as_response(answer: Answer) -> requests.Response:
    response = requests.Response()
    response.status_code = answer.status
    response.headers.update(answer.headers)
    response._content = answer.body
    return response


def _as_file(body: object) -> BinaryIO:
    # aiohttp writes a file piece by piece, and bytes all at once.
    return io.BytesIO(body if isinstance(body, bytes) else str(body).encode())


def _only_keys(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if not name.lower().startswith("content-")}
