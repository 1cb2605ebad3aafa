"""E-mail through providers: the contract against a Postmark, and one message through each of the others."""

import base64
import hashlib
import io
import re
from collections.abc import Iterable
from email.utils import parseaddr
from typing import Any, ClassVar
from urllib.parse import unquote

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from delivery.outcomes import AccountBlocked, RateLimited, Rejected, Sent, ServerError, Unknown
from delivery.transports.base import AccountState, CredentialsError, Message
from delivery.transports.email_provider.providers import PROVIDERS
from delivery.transports.email_provider.send import EmailProviderTransport
from delivery.transports.http.exchange import open_session
from tests.delivery.transports.contract import InlineMediaContract, TransportContract
from tests.delivery.transports.gateway import AnswerContract, Gateway, RefusedError, Reply, Said, same_secret
from tests.delivery.transports.harness import NO_SESSION, SECRET, Received, Scenario, picture
from tests.delivery.transports.shapes import Maybe

SENDER = "news@school.example"
EMAIL = {
    "From": str,
    "To": str,
    "Subject": str,
    "TextBody": Maybe(str),
    "HtmlBody": str,
    "Headers": [{"Name": str, "Value": str}],
    "Attachments": Maybe([{"Name": str, "Content": str, "ContentType": str, "ContentID": Maybe(str)}]),
}
ERROR = {"ErrorCode": 0, "Message": "Something"}


class Postmark(Gateway):
    kind = EmailProviderTransport
    address = "reader@example.com"
    refused_address = "inactive@example.com"
    takes_key = True
    means = NO_SESSION
    scenarios = frozenset(Scenario) - {Scenario.REFUSES_FOR_NOW}  # it has no word for that
    answers: ClassVar = {
        Scenario.RATE_LIMITS: Reply(status=429, body=ERROR),
        Scenario.NOT_CONNECTED: Reply(status=503, body=ERROR),
        Scenario.BLOCKED: Reply(
            status=401, body={"ErrorCode": 10, "Message": "Bad or missing server token."}
        ),
        Scenario.REJECTS: Reply(status=422, body={"ErrorCode": 406, "Message": "Inactive recipient."}),
        Scenario.BREAKS_AFTER: Reply(status=500, body=ERROR),
    }

    def routes(self) -> Iterable[web.RouteDef]:
        return [web.post("/email", self._email), web.get("/email", self._nothing)]

    def check_secret(self, request: web.Request) -> None:
        if not same_secret(request.headers.get("X-Postmark-Server-Token"), SECRET):
            told = request.headers.get("X-Postmark-Server-Token")
            raise RefusedError(Reply(status=401, body={"ErrorCode": 10, "Message": f"{told} is wrong."}))

    def credentials_on(self, port: int) -> dict[str, str]:
        return {
            "provider": "postmark",
            "key": SECRET,
            "api_url": f"http://127.0.0.1:{port}",
            "from_address": SENDER,
        }

    def wrong_credentials(self) -> dict[str, str]:
        return {**self.credentials(), "key": f"{SECRET}-but-another"}

    async def _nothing(self, request: web.Request) -> web.StreamResponse:
        return Reply(status=405, body=ERROR).response()

    async def _email(self, request: web.Request) -> web.StreamResponse:
        mail = await self.checked(request, EMAIL)
        headers = {each["Name"]: each["Value"] for each in mail["Headers"]}
        self.check(headers.get("X-PM-KeepID"), re.compile("true"), "X-PM-KeepID")
        self.check(headers, {"Message-ID": str, "X-PM-KeepID": str}, "headers")
        key = unquote(headers["Message-ID"].strip("<>").partition("@")[0])
        files = mail.get("Attachments", [])
        content = base64.b64decode(files[0]["Content"]) if files else b""
        received = Received(
            address=parseaddr(mail["To"])[1],
            text=mail.get("TextBody", ""),
            chars=len(mail.get("TextBody", "")),
            key=key,
            media=hashlib.sha256(content).hexdigest() if files else "",
            filename=files[0]["Name"] if files else "",
        )
        sent = {"To": mail["To"], "ErrorCode": 0, "Message": "OK", "MessageID": "b7bc2f4a-e38e-4336"}
        return await self.take(request, received, Reply(body=sent))


def said(status: int, body: Any, means: type, words: str = "", **more: Any) -> Said:
    return Said(reply=Reply(status=status, body=body), means=means, words=words, **more)


class TestEmailProvider(TransportContract, InlineMediaContract, AnswerContract):
    service = Postmark
    table = (
        said(422, {"ErrorCode": 300, "Message": "Invalid email"}, Rejected, "Invalid email", code="422"),
        said(402, {"message": "Credit used up"}, AccountBlocked, "Credit used up"),
        said(400, {"errors": [{"message": "Bad from"}]}, Rejected, "Bad from", code="400"),
        said(500, {"name": "Invalid_Key", "message": "Invalid API key"}, AccountBlocked),
        said(200, {"ErrorCode": 0}, Unknown),
        said(429, {"message": "Slow down"}, RateLimited, "Slow down"),
        said(503, {}, ServerError),
    )

    async def test_a_link_to_unsubscribe_goes_along(self, transport: EmailProviderTransport) -> None:
        message = Message(
            address="a@example.com", kind="text", text="x", unsubscribe_url="https://x.example/u"
        )
        request = transport.build_message(message, "k")
        assert not isinstance(request, Rejected)
        assert isinstance(request.body, io.BytesIO)
        assert b'"List-Unsubscribe", "Value": "<https://x.example/u>"' in request.body.getvalue()


# What each provider says when it took one message, as its documentation has it.
ANSWERS: dict[str, Reply] = {
    "brevo": Reply(status=201, body={"messageId": "an-id"}),
    "mailersend": Reply(status=202, body=b"", headers={"X-Message-Id": "an-id", "Content-Type": "text/html"}),
    "mailgun": Reply(body={"id": "an-id", "message": "Queued. Thank you."}),
    "mailjet": Reply(
        body={
            "Messages": [
                {
                    "Status": "success",
                    "To": [{"Email": "reader@example.com", "MessageID": "an-id"}],
                    "Cc": [],
                    "Bcc": [],
                }
            ]
        }
    ),
    "mandrill": Reply(body=[{"email": "reader@example.com", "status": "sent", "_id": "an-id"}]),
    "postmark": Reply(
        body={"To": "reader@example.com", "ErrorCode": 0, "Message": "OK", "MessageID": "an-id"}
    ),
    "resend": Reply(body={"id": "an-id"}),
    "sparkpost": Reply(
        body={"results": {"total_rejected_recipients": 0, "total_accepted_recipients": 1, "id": "an-id"}}
    ),
}


class Listener:
    """Takes whatever comes, and always says the same."""

    def __init__(self, reply: Reply) -> None:
        self.reply = reply
        self.bodies: list[bytes] = []
        self.headers: list[str] = []

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.bodies.append(await request.read())
        self.headers.append(str(request.headers))
        return self.reply.response()

    async def send(self, provider: str, message: Message) -> object:
        app = web.Application(client_max_size=2**24)
        app.router.add_route("*", "/{rest:.*}", self.handle)
        async with TestServer(app, host="127.0.0.1") as server, open_session() as session:
            credentials = {
                "provider": provider,
                "key": SECRET,
                "second_key": "another",
                "api_url": f"http://127.0.0.1:{server.port}/v3",
                "from_address": SENDER,
                "from_name": "Büro",
            }
            transport = EmailProviderTransport(credentials, session)
            assert await transport.status() is AccountState.WORKING
            return await transport.send(message, "k")


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_message_goes_through_each_provider(provider: str) -> None:
    listener = Listener(ANSWERS[provider])
    outcome = await listener.send(provider, picture("reader@example.com"))

    assert isinstance(outcome, Sent)
    assert outcome.provider_id == "an-id"
    assert b"Sch" in listener.bodies[-1]


@pytest.mark.parametrize(
    ("provider", "body"),
    [
        ("mandrill", [{"email": "reader@example.com", "status": "rejected", "reject_reason": "hard-bounce"}]),
        (
            "sparkpost",
            {"results": {"total_rejected_recipients": 1, "total_accepted_recipients": 0, "id": "x"}},
        ),
    ],
)
async def test_a_refusal_in_a_good_answer_is_one(provider: str, body: Any) -> None:
    message = Message(address="reader@example.com", kind="text", text="Hello")
    outcome = await Listener(Reply(body=body)).send(provider, message)
    assert isinstance(outcome, Rejected)
    assert outcome.code


@pytest.mark.parametrize(
    ("status", "state", "silent"),
    [(401, AccountState.BLOCKED, False), (503, AccountState.UNREACHABLE, False), (0, "unreachable", True)],
)
async def test_it_says_why_the_account_does_not_work(status: int, state: str, silent: bool) -> None:
    async def handle(_: web.Request) -> web.StreamResponse:
        return Reply(status=status, body={"message": "No way"}).response()

    app = web.Application()
    app.router.add_route("*", "/{rest:.*}", handle)
    async with TestServer(app, host="127.0.0.1") as server, open_session() as session:
        port = server.port if status else 9
        credentials = {"provider": "mailgun", "key": SECRET, "api_url": f"http://127.0.0.1:{port}/v3"}
        transport = EmailProviderTransport({**credentials, "from_address": SENDER}, session)
        assert (await transport.status(), transport.silent) == (state, silent)
    said = f"the gateway answered {status}: No way" if status else "connection refused, 127.0.0.1:9"
    assert transport.why == said


def test_a_provider_with_two_keys_asks_for_both() -> None:
    with pytest.raises(CredentialsError, match="Second key"):
        EmailProviderTransport({"provider": "mailjet", "key": "k", "from_address": SENDER}, None)


def test_an_address_that_is_none_is_named() -> None:
    with pytest.raises(CredentialsError, match="Address"):
        EmailProviderTransport(
            {"provider": "mailgun", "key": "k", "from_address": SENDER, "api_url": "nowhere"}, None
        )
