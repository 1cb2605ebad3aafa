"""CPU per message for each kind of transport, compared with a bare client that sends the same bytes, in one run.

The receiver is another process, and the time is CPU time: neither the network nor a busy machine matters.
"""

import asyncio
import io
import smtplib
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from statistics import median

import aiohttp
import uvloop

from benchmarks.files import worker_bytes
from benchmarks.receivers.every_kind import Receiver, receiver
from delivery.outcomes import Rejected, Sent
from delivery.transports import kinds
from delivery.transports.base import Message, Transport
from delivery.transports.http.exchange import Request, open_session
from delivery.transports.http.transport import HttpTransport
from delivery.transports.mail.composing import SENDER_FIELDS, Sender, written_out

MESSAGES = 300
ROUNDS = 5
MOST_OWN_MS = 2.0
MOST_BY_ADDRESS_MB = 2.0  # for a thousand messages
WORDS = "Dear {name},\n\nthe bus leaves at nine: https://school.example/trip?id=4711\n\nYour school. " * 4
MAILBOX, GROUP, PROFILE = (
    "reader@example.com",
    "120363000000000001@g.us",
    "ACoAAAcDMMQBODyLwZrRcgYhrkCafURGqva0U4E",
)
FROM = {"from_address": "news@school.example", "from_name": "Grüne Schule"}


def accounts(to: Receiver) -> Mapping[str, tuple[str, Mapping[str, str]]]:
    """Return an address and credentials for each kind."""
    url = to.url
    return {
        "sandbox": (GROUP, {"base_url": url, "account": "a", "token": "t"}),
        "waha": (GROUP, {"base_url": url, "api_key": "k"}),
        "evolution": (GROUP, {"base_url": url, "api_key": "k", "instance": "i"}),
        "cloud_api": ("+4915112345678", {"base_url": url, "phone_id": "1", "token": "t", "app_secret": "s"}),
        "wassenger": (GROUP, {"base_url": url, "token": "t", "device": "d"}),
        "unipile": (PROFILE, {"base_url": url, "api_key": "k", "account_id": "a"}),
        "matrix": ("!room:example.com", {"base_url": url, "access_token": "t"}),
        "email": (MAILBOX, {**FROM, "host": "127.0.0.1", "port": str(to.smtp), "security": "none"}),
        "email_provider": (MAILBOX, {**FROM, "provider": "postmark", "key": "k", "api_url": url}),
    }


def main(argv: Sequence[str]) -> dict[str, object]:
    messages = int(argv[0]) if argv else MESSAGES
    with receiver() as to, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        cost = runner.run(_measure(to, messages))
    print(f"{'kind':<16}{'ms per send':>12}{'bare client':>12}{'our own':>12}")
    for kind, (ours, bare) in cost.items():
        print(f"{kind:<16}{ours:>12.3f}{bare:>12.3f}{ours - bare:>12.3f}")
    sent = worker_bytes.measure()
    megabytes = worker_bytes.as_mb(sent)
    print(f"\n{'1,000 groups, 5 MB':<20}{'from the worker':>16}{'fetched':>12}{'seconds':>10}")
    for kind, ways in sent.items():
        for how, counted in ways.items():
            fetched = f"{counted.fetched / worker_bytes.MB:.0f} MB"
            print(f"{kind} {how:<14}{megabytes[kind][how]:>13,.2f} MB{fetched:>12}{counted.seconds:>10.1f}")
    own = max(ours - bare for ours, bare in cost.values())
    return {
        "own_ms_per_send": round(own, 3),
        "ms_per_send": {kind: round(ours, 3) for kind, (ours, _) in cost.items()},
        "bare_ms_per_send": {kind: round(bare, 3) for kind, (_, bare) in cost.items()},
        "worker_mb": megabytes,
        "ok": own < MOST_OWN_MS and all(ways["address"] < MOST_BY_ADDRESS_MB for ways in megabytes.values()),
    }


async def _measure(to: Receiver, messages: int) -> dict[str, tuple[float, float]]:
    """Return for each kind the cost of a message through its transport and through a bare client, in milliseconds."""
    cost = {}
    async with open_session() as session:
        for kind, (address, credentials) in accounts(to).items():
            transport = kinds()[kind](credentials, session)
            message = Message(
                address=address,
                kind="text",
                text=WORDS,
                subject="Grüße",
                unsubscribe_url="https://paceline.example/unsubscribe/x" if address == MAILBOX else "",
            )
            bare = _bare(transport, message, session, to)
            rounds = [
                (await _cost(_ours(transport, message), messages), await _cost(bare, messages))
                for _ in range(ROUNDS)
            ]
            await transport.close()
            cost[kind] = (median(ours for ours, _ in rounds), median(each for _, each in rounds))
    return cost


async def _cost(send: Callable[[int], Awaitable[None]], messages: int) -> float:
    await send(0)
    before = time.process_time()
    for number in range(messages):
        await send(number)
    return (time.process_time() - before) * 1000 / messages


def _ours(transport: Transport, message: Message) -> Callable[[int], Awaitable[None]]:
    async def send(number: int) -> None:
        outcome = await transport.send(message, f"8d5f0c1e-run-{number}-0")
        assert isinstance(outcome, Sent), outcome

    return send


def _bare(
    transport: Transport, message: Message, session: aiohttp.ClientSession, to: Receiver
) -> Callable[[int], Awaitable[None]]:
    if not isinstance(transport, HttpTransport):
        return _bare_smtp(message, to)
    request = transport.build_message(message, "key")
    assert not isinstance(request, Rejected)
    body = _as_bytes(request)

    async def send(_: int) -> None:
        async with session.request(request.method, request.url, data=body, headers=request.headers) as answer:
            await answer.read()

    return send


def _as_bytes(request: Request) -> bytes:
    if isinstance(request.body, io.BytesIO):
        return request.body.getvalue()
    return request.body if isinstance(request.body, bytes) else WORDS.encode()


def _bare_smtp(message: Message, to: Receiver) -> Callable[[int], Awaitable[None]]:
    """Return a sender with smtplib, one connection and a prepared message."""
    mail = Sender({field.name: field.default for field in SENDER_FIELDS} | FROM).compose(message, "key")
    assert not isinstance(mail, Rejected)
    content = written_out(mail)
    connection = smtplib.SMTP("127.0.0.1", to.smtp, local_hostname="school.example")

    async def send(_: int) -> None:
        await asyncio.to_thread(connection.sendmail, FROM["from_address"], [MAILBOX], content)

    return send
