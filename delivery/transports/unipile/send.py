"""LinkedIn and e-mail through Unipile, a paid service that holds the sessions (https://www.unipile.com)."""

import json
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Any, BinaryIO, ClassVar

import aiohttp
from yarl import URL

from delivery.outcomes import NotConnected, Outcome, Rejected, Sent, ServerError, Unknown
from delivery.transports.base import (
    AccountState,
    Capabilities,
    Contact,
    CredentialField,
    InboundEvent,
    Media,
    Message,
    UnansweredError,
    Webhook,
    WebhookRequest,
    sendable,
)
from delivery.transports.http.exchange import STATUSES, Answer, Failure, Request, below, gateway_url
from delivery.transports.http.reading import items, text
from delivery.transports.http.transport import HttpTransport
from delivery.transports.mail.html import html_of
from delivery.transports.unipile import errors, reports
from delivery.transports.unipile.reports import STATES

LONGEST_NOTE = {"paid": 300, "free": 200}  # of an invitation, by LinkedIn's subscription
PAGE = 1000
MOST_PAGES = 100
# LinkedIn's own id of a profile; any other address is the name at the end of a profile's URL.
PROVIDER_ID = re.compile(r"A[CDE][A-Za-z0-9][A-Za-z0-9_-]{17,}")
TOOK = frozenset({"ChatStarted", "MessageSent", "UserInvitationSent", "EmailSent"})


class UnipileTransport(HttpTransport):
    """One account that is connected in Unipile's dashboard. Each action has limits of its own."""

    kind = "unipile"
    label = "Unipile"
    about = "LinkedIn messages, invitations and InMails, or e-mail, through Unipile: the account is connected there."
    channels = frozenset({"linkedin", "email"})
    default_capabilities = Capabilities(
        groups=True,
        webhooks=True,
        receipts=True,
        actions=frozenset({"message", "connection_request", "inmail", "email"}),
    )
    credential_fields = (
        CredentialField(
            name="base_url",
            place=True,
            session=True,
            label="DSN",
            help="Such as https://api1.unipile.com:13111.",
        ),
        CredentialField(name="api_key", label="Access token", secret=True),
        CredentialField(
            name="account_id", session=True, label="Account", help="Its id in Unipile's dashboard."
        ),
        CredentialField(
            name="subscription",
            label="LinkedIn subscription",
            required=False,
            default="paid",
            choices=(
                ("paid", "Paid: notes of up to 300 characters"),
                ("free", "Free: notes of up to 200 characters"),
            ),
        ),
    )
    proof = "Unipile sends a secret with its reports: connect the account again, so that it knows the secret."
    statuses: ClassVar[Mapping[int, Failure]] = {
        **STATUSES,
        501: Rejected,
        503: NotConnected,  # it has no session with the account's service
    }
    most_file_bytes = 15 * 10**6

    def prepare(self) -> None:
        self._api = gateway_url(self.credentials["base_url"], label="DSN") / "api" / "v1"
        self._account = self.credentials["account_id"]
        self._longest_note = LONGEST_NOTE[self.credentials.get("subscription") or "paid"]
        self.headers = {"X-API-KEY": self.credentials["api_key"], "Accept": "application/json"}
        self._known: dict[str, str] = {}

    # Messages

    async def send(self, message: Message, key: str) -> Outcome:
        if message.action == "email" or PROVIDER_ID.fullmatch(message.address):
            return await super().send(message, key)
        try:
            address = self._known.get(message.address) or await self._look_up(message.address)
        except UnansweredError as error:
            # Nothing was sent yet.
            outcome = error.outcome
            return ServerError(reason=outcome.reason) if isinstance(outcome, Unknown) else outcome
        return await super().send(replace(message, address=address), key)

    def build_message(self, message: Message, key: str) -> Request | Rejected:  # noqa: ARG002 (it takes none)
        if message.action == "connection_request":
            return self._invitation(message)
        return self._form(message, None, None)

    def build_with_file(self, message: Message, media: Media, key: str, file: BinaryIO) -> Request | Rejected:  # noqa: ARG002
        if message.action == "connection_request":
            return Rejected(reason="an invitation carries no file", code="no_files")
        return self._form(message, media, file)

    def parse_sent(self, answer: Answer) -> Outcome:
        found = answer.json()
        if text(found, "object") not in TOOK:
            return self.unreadable(answer)
        ids = (text(found, name) for name in ("message_id", "invitation_id", "tracking_id", "chat_id"))
        return Sent(provider_id=next(filter(None, ids), ""))

    def parse_failure(self, answer: Answer) -> Outcome:
        slug, detail = self.describe(answer)
        reason = errors.WORDS.get(slug) or self.said(answer, detail or slug)
        known = errors.outcome_of(slug, reason)
        if known is not None:
            return known
        outcome = super().parse_failure(answer)
        return outcome if isinstance(outcome, Sent) else replace(outcome, reason=reason)

    def describe(self, answer: Answer) -> tuple[str, str]:
        found = answer.json()
        return errors.slug_of(text(found, "type")), text(found, "detail") or text(found, "title")

    # The account and its contacts

    async def ask_state(self) -> AccountState:
        found = await self._get(below(self._api, "accounts", self._account))
        states = [
            STATES.get(text(source, "status"), AccountState.STOPPED) for source in items(found, "sources")
        ]
        # Of several, such as messages and Sales Navigator, the worst counts.
        order = (AccountState.BLOCKED, AccountState.STOPPED, AccountState.STARTING, AccountState.WORKING)
        return min(states, key=order.index, default=AccountState.STOPPED)

    async def recipients(self) -> AsyncIterator[Contact]:
        cursor = ""
        for _ in range(MOST_PAGES):
            asked = {"account_id": self._account, "limit": str(PAGE)} | ({"cursor": cursor} if cursor else {})
            found = await self._get((self._api / "users" / "relations").with_query(asked))
            for row in items(found, "items"):
                name = f"{text(row, 'first_name')} {text(row, 'last_name')}".strip()
                if address := text(row, "member_id"):
                    yield Contact(address=address, name=name or address, kind="person")
            cursor = text(found, "cursor")
            if not cursor:
                return

    # Webhooks

    async def connect(self, webhook: Webhook | None, *, start: bool = True) -> AccountState:  # noqa: ARG002
        state = await self.ask_state()
        if webhook is not None:
            await self._register(webhook)
        return state

    def parse_webhook(self, request: WebhookRequest) -> list[InboundEvent]:
        return reports.parse(request, account=self._account)

    async def _register(self, webhook: Webhook) -> None:
        """Make one webhook for each source, and remove those that lead elsewhere."""
        name = f"Paceline {self._account}"
        known = items(await self._get((self._api / "webhooks").with_query(limit=250)), "items")
        ours = [row for row in known if text(row, "name") == name]
        for row in ours:
            if text(row, "request_url") != webhook.url and text(row, "id"):
                url = below(self._api, "webhooks", text(row, "id"))
                await self.answered(self.request("DELETE", url))
        there = {text(row, "source") for row in ours if text(row, "request_url") == webhook.url}
        for source in reports.EVENTS:
            if source not in there:
                told = reports.registration(webhook, source=source, account=self._account, name=name)
                url = self._api / "webhooks"
                await self.answered(self.request("POST", url, told))

    # Requests

    async def _get(self, url: URL) -> dict[str, Any]:
        return await self.ask(self.request("GET", url))

    async def _look_up(self, name: str) -> str:
        """Return the id behind the name of a profile. LinkedIn counts this as a visit, so each is looked up once."""
        url = below(self._api, "users", name).with_query(account_id=self._account)
        found = text(await self._get(url), "provider_id")
        if not found:
            raise UnansweredError(
                Rejected(reason="LinkedIn knows nobody by this name", code="unknown_profile")
            )
        self._known[name] = found
        return found

    def _invitation(self, message: Message) -> Request | Rejected:
        note = sendable(message.text).strip()
        if len(note) > (most := self._longest_note):
            return Rejected(
                reason=f"the note of an invitation has at most {most} characters, and this one {len(note)}",
                code="too_many_characters",
            )
        payload = {"account_id": self._account, "provider_id": message.address}
        if note:
            payload["message"] = note
        return self.request("POST", self._api / "users" / "invite", payload)

    def _form(self, message: Message, media: Media | None, file: BinaryIO | None) -> Request:
        path, fields = self._email(message) if message.action == "email" else self._chat(message)
        # Names as browsers write them, in UTF-8.
        form = aiohttp.FormData(quote_fields=False, default_to_multipart=True)
        for name, value in fields.items():
            form.add_field(name, value)
        if media is not None and file is not None:
            form.add_field("attachments", file, filename=media.filename, content_type=media.content_type)
        return Request(method="POST", url=self._api / path, headers=self.headers, body=form)

    def _chat(self, message: Message) -> tuple[str, dict[str, str]]:
        """Continue the chat with a person, or begin one where there is none."""
        fields = {
            "account_id": self._account,
            "attendees_ids": message.address,
            "text": sendable(message.text),
        }
        if message.subject:
            fields["subject"] = sendable(message.subject)
        if message.action == "inmail":
            fields |= {"linkedin[api]": "classic", "linkedin[inmail]": "true"}
        return "chats", fields

    def _email(self, message: Message) -> tuple[str, dict[str, str]]:
        words = sendable(message.text)
        return "emails", {
            "account_id": self._account,
            "to": json.dumps([{"identifier": message.address}]),
            "subject": sendable(message.subject),
            "body": html_of(words, unsubscribe_url=message.unsubscribe_url),
        }
