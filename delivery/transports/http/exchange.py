"""HTTP to a gateway: one request, one answer, and every way in which that fails as an `Outcome`.

The question behind every failure is whether the message may have gone out:

- no connection (refused, no such name, TLS, connect timeout, closed before we wrote), or an answer that leads
  elsewhere: nothing left -> Unreachable.
- the connection ended while a file was on its way, before its end was written: nothing was acted on -> ServerError.
- the request was written and no whole answer came (read timeout, disconnect, cut body, an answer that
  cannot be read): it may have arrived -> Unknown.
- 500, 502, 504: the request arrived, and the service may have acted before it failed -> Unknown. With an
  idempotency key the engine sends again and nothing is doubled; without one a person decides. A service that
  says that it did not act is read by its kind (`parse_failure`) as ServerError.
- 503: the service, or what stands in front of it, takes nothing from anybody at the moment -> ServerError.
"""

import asyncio
import json
import logging
import math
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, BinaryIO
from urllib.parse import quote

import aiohttp
from yarl import URL

from delivery.outcomes import (
    AccountBlocked,
    NotConnected,
    RateLimited,
    Rejected,
    ServerError,
    TryAgain,
    Unknown,
    Unreachable,
)
from delivery.transports.base import CredentialsError
from delivery.transports.http.connection import MAX_ANSWER_BYTES, TOOK_NOTHING, WholeAnswer
from delivery.transports.http.pool import KEEP_ALIVE, Place, Pool
from delivery.transports.http.reading import parsed
from delivery.transports.http.resolver import Resolver
from delivery.transports.leaving import LookingRequest, NotWholeError, about_to_leave, send_once
from delivery.transports.networks.addresses import BadWebAddressError, web_address
from delivery.transports.networks.allowed import ANYWHERE, AddressNotAllowedError, AllowedNetworks
from delivery.transports.networks.errors import Step, describe_connection_error

logger = logging.getLogger(__name__)

Failure = (
    type[RateLimited]
    | type[NotConnected]
    | type[Unreachable]
    | type[ServerError]
    | type[TryAgain]
    | type[Rejected]
    | type[AccountBlocked]
    | type[Unknown]
)

# What is known about a message that got no answer.
Unanswered = Unreachable | ServerError | Unknown | AccountBlocked

# The meaning of a status, unless the kind gives another; `meaning` has the rest.
STATUSES: Mapping[int, Failure] = {
    401: AccountBlocked,
    402: AccountBlocked,  # the plan or the credit has ended
    403: AccountBlocked,
    407: AccountBlocked,  # a proxy wants to know who we are
    408: ServerError,  # the server gave up waiting for the request
    425: ServerError,
    429: RateLimited,
    503: ServerError,
}
REDIRECTS = frozenset({301, 302, 307, 308})
FOR_EVERYBODY = frozenset({503})
# Without the service's own words, something else answers at its address: a web server, a proxy.
NOT_THE_SERVICE = frozenset({404, 405, 410, 421, 426})


class ClosedAtOnceError(aiohttp.ClientConnectionError):
    """Raised where the gateway closes each new connection before anything was written."""


# The first match counts: subclasses come before their base classes.
NOTHING_LEFT: Mapping[type[Exception], str] = {
    aiohttp.ConnectionTimeoutError: "no connection to the gateway within {connect:g} s",
    aiohttp.ClientConnectorDNSError: "the name of the gateway is not known",
    aiohttp.ClientSSLError: "no secure connection to the gateway (TLS)",
    aiohttp.ServerFingerprintMismatch: "no secure connection to the gateway (TLS)",
    aiohttp.ClientConnectorError: "the gateway cannot be reached",
    ClosedAtOnceError: "the gateway closes each connection at once",
    aiohttp.InvalidURL: "the address of the gateway is not valid",
    aiohttp.NonHttpUrlClientError: "the address of the gateway is not valid",
}
MAY_HAVE_ARRIVED: Mapping[type[Exception], str] = {
    TimeoutError: "no answer from the gateway within {total:g} s",
    aiohttp.ClientPayloadError: "the answer of the gateway was cut off",
    aiohttp.ClientConnectionError: "the gateway closed the connection before it answered",
    OSError: "the gateway closed the connection before it answered",
}
MAX_WAIT = 86_400.0
MAX_AT_ONCE = 64 * 2**10  # a longer body takes a while, and is looked at again before its end
SENDING = frozenset({"POST", "PUT"})
CONTROL = frozenset(map(chr, range(32))) - {"\t"}
ACCEPTED = {"Accept": "*/*", "User-Agent": aiohttp.http.SERVER_SOFTWARE}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request to send. Headers and body stay out of its repr: they hold tokens and people's words."""

    method: str
    url: URL = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes | BinaryIO | AsyncIterator[bytes] | aiohttp.FormData | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A whole answer."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    request: Request | None = field(default=None, repr=False)  # the request that it answers

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    def json(self) -> dict[str, Any]:
        """Return the JSON object in the body; empty where there is none."""
        found = parsed(self.body)
        return found if isinstance(found, dict) else {}


class Connector(aiohttp.TCPConnector):
    """The connections of a session: aiohttp's own, and those that carry messages."""

    def __init__(self, networks: AllowedNetworks) -> None:
        super().__init__(
            limit=0, keepalive_timeout=KEEP_ALIVE, socket_factory=networks.open_socket, resolver=Resolver()
        )
        self.messages = Pool(networks)

    async def close(self, *, abort_ssl: bool = False) -> None:
        self.messages.close()
        await super().close(abort_ssl=abort_ssl)


def open_session(*, networks: AllowedNetworks = ANYWHERE) -> aiohttp.ClientSession:
    """Return a session that many accounts can share: no cookies, and no limit on connections."""
    return aiohttp.ClientSession(
        connector=Connector(networks),
        cookie_jar=aiohttp.DummyCookieJar(),
        request_class=LookingRequest,
        middlewares=(send_once,),
    )


def gateway_url(text: str, *, label: str) -> URL:
    """Return the address of a gateway as an operator typed it; raise CredentialsError."""
    try:
        found = web_address(text)
    except BadWebAddressError as error:
        raise CredentialsError(f"{label} is not an http or https address.") from error
    if found.query:
        raise CredentialsError(f"{label} may hold a host and a path, and nothing else.")
    return URL(str(found))


def below(url: URL, *names: str) -> URL:
    """Return the address below `url`; each name is one step of its path, whatever characters it has."""
    return url.joinpath(*(quote(name, safe="") for name in names), encoded=True)


def json_request(method: str, url: URL, *, headers: Mapping[str, str], payload: object = None) -> Request:
    """Return a request with a JSON body, or with none."""
    if payload is None:
        return Request(method=method, url=url, headers=headers)
    body = json.dumps(payload).encode()
    return Request(method=method, url=url, headers={**headers, "Content-Type": "application/json"}, body=body)


async def exchange(
    session: aiohttp.ClientSession, request: Request, *, connect: float, total: float
) -> Answer | Unanswered:
    """Send the request once and read the answer; never raises for a failure of the network or the server."""
    try:
        if isinstance(session.connector, Connector) and (written := in_one_piece(request)):
            place = Place.of(request.url)
            found = await _at_once(session.connector.messages, place, written, connect=connect, total=total)
        else:
            found = await _by_aiohttp(session, request, connect, total)
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        # The error's text may hold the address with its secrets: the type is enough.
        logger.info("%s on %s to %s", type(error).__name__, request.method, request.url.host)
        unanswered = without_answer(error, connect=connect, total=total)
        return _with_place(unanswered, error, request.url, connect=connect, total=total)
    return Answer(status=found.status, headers=found.headers, body=found.body, request=request)


def in_one_piece(request: Request) -> bytes:
    """Return the bytes of a short message; empty for a file, which takes a while, and for a question.

    Raise ValueError for a header that would end too early.
    """
    body = request.body
    if (
        request.method not in SENDING
        or not isinstance(body, bytes)
        or len(body) > MAX_AT_ONCE
        or request.url.raw_user
    ):
        return b""
    headers = {"Host": request.url.host_port_subcomponent or "", **ACCEPTED, **request.headers}
    lines = [f"{request.method} {request.url.raw_path_qs} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    lines.append(f"Content-Length: {len(body)}")
    if any(not CONTROL.isdisjoint(line) for line in lines):
        raise ValueError("A header cannot hold a line break.")
    return "\r\n".join([*lines, "", ""]).encode() + body


async def _at_once(pool: Pool, place: Place, written: bytes, *, connect: float, total: float) -> WholeAnswer:
    """Take a connection, have the last look, and write the message with nothing in between."""
    by = asyncio.get_running_loop().time() + total
    connection = await pool.take(place, connect=connect)
    try:
        await about_to_leave()
        if connection.closed:  # during the look: nothing has left
            connection = await pool.open(place, connect=connect)
            await about_to_leave()
        if connection.closed:
            raise ClosedAtOnceError
        return await connection.ask(written, by=by)
    finally:
        pool.give_back(place, connection)


async def _by_aiohttp(
    session: aiohttp.ClientSession, request: Request, connect: float, total: float
) -> WholeAnswer:
    """Leave the request to aiohttp: it holds a file, or it is a question."""
    # Not `sock_connect`: looking up the name and waiting for a free connection count too.
    timeout = aiohttp.ClientTimeout(connect=connect, total=total)
    async with session.request(
        request.method,
        request.url,
        data=request.body,
        headers=request.headers,
        timeout=timeout,
        allow_redirects=False,  # would hand the token to another host
    ) as response:
        try:
            body = await _read(response)
        except aiohttp.ClientPayloadError:
            if response.status not in TOOK_NOTHING:
                raise
            body = b""
        return WholeAnswer(status=response.status, headers=response.headers, body=body)


async def _read(response: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > MAX_ANSWER_BYTES:
            raise aiohttp.ClientPayloadError("the answer is too long")
    return bytes(body)


def _with_place(
    unanswered: Unanswered, error: Exception, url: URL, *, connect: float, total: float
) -> Unanswered:
    """Return the outcome with the cause, the host and the port in its reason."""
    if isinstance(unanswered, AccountBlocked):
        return unanswered
    sent = isinstance(unanswered, Unknown)
    said = describe_connection_error(
        error,
        url.host or "",
        url.port,
        Step.SEND if sent else Step.CONNECT,
        seconds=total if sent else connect,
        otherwise=unanswered.reason,
    )
    return replace(unanswered, reason=said)


def without_answer(error: Exception, *, connect: float, total: float) -> Unanswered:
    """Return what a failure of the network or of aiohttp means for the message."""
    if isinstance(error, aiohttp.ClientConnectorError) and isinstance(error.os_error, AddressNotAllowedError):
        return AccountBlocked(reason=AddressNotAllowedError.reason)
    for kind, reason in NOTHING_LEFT.items():
        if isinstance(error, kind):
            return Unreachable(reason=reason.format(connect=connect))
    if isinstance(error, NotWholeError):
        return ServerError(reason="the gateway closed the connection before it had the whole file")
    for kind, reason in MAY_HAVE_ARRIVED.items():
        if isinstance(error, kind):
            return Unknown(reason=reason.format(total=total))
    return Unknown(reason="the answer of the gateway cannot be read")


def nothing_sent(unanswered: Unanswered) -> Unanswered:
    """Return an outcome without doubt for a question or a login that got no answer: no message was sent yet."""
    return ServerError(reason=unanswered.reason) if isinstance(unanswered, Unknown) else unanswered


def meaning(status: int, statuses: Mapping[int, Failure]) -> Failure:
    """Return the outcome of a failed status."""
    if status in statuses:
        return statuses[status]
    if 400 <= status < 500:
        return Rejected
    # A redirect of the request was not followed, so nothing was acted on: the address is wrong. 303 is something else:
    # the request was acted on, and its result is elsewhere.
    return Unreachable if status in REDIRECTS else Unknown


def retry_after(answer: Answer, *, now: datetime) -> float | None:
    """Return the seconds that the server asks to wait, given as a number or as a date; at most a day."""
    said = answer.headers.get("Retry-After", "").strip()
    try:
        seconds = float(said)
    except ValueError:
        seconds = _seconds_until(said, answer, now)
    return min(max(seconds, 0.0), MAX_WAIT) if math.isfinite(seconds) else None


def _seconds_until(date: str, answer: Answer, now: datetime) -> float:
    """Return the seconds until a date of the server, by the server's own clock where the answer tells it."""
    until = _date(date)
    return (
        math.nan
        if until is None
        else (until - (_date(answer.headers.get("Date", "")) or now)).total_seconds()
    )


def _date(text: str) -> datetime | None:
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, OverflowError):  # no date, or one with a day that no computer can count to
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)
