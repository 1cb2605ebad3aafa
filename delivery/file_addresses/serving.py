"""Serves files to gateways: an ASGI application of its own in front of Django, for the addresses of `tokens.py`.

Nobody logs in here: the address is the proof. It names one file, which is read piece by piece, in threads that serve
nothing else: a slow disk, bucket or reader holds up no page. How many files are read at once is limited, for all and
for each account, and how often an account is asked for files.
"""

import asyncio
import os
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from ipaddress import ip_address
from typing import Any, BinaryIO, TypeVar, cast

import structlog
from django.conf import settings
from django.core.exceptions import SuspiciousOperation
from django.core.files.storage import default_storage
from django.db import DatabaseError, connection

from accounts.models import Account
from config.shares import Shares
from config.web.proxies import client_address, networks_of
from delivery.file_addresses import tokens
from delivery.file_addresses.answers import FileAnswer, answer, etag_of, refusal
from delivery.file_addresses.tokens import NotAnAddressError, Ticket
from delivery.models import Run
from delivery.transports.base import FILES_PATH

log = structlog.get_logger(__name__)

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
T = TypeVar("T")

THREADS = 8
PIECE = 2**18
EACH_SHARE = 4  # one account gets at most a quarter of the places
PLACE_SECONDS = 10.0  # for which a request waits for a place
LOOK_AGAIN = 0.05
SECONDS = 300.0  # for which a reader may take a whole file
PER_MINUTE = 1200  # requests for files of one account: a message takes one or two


class Files:
    """Answers requests for files, and passes all others on."""

    def __init__(self, otherwise: App) -> None:
        self._otherwise = otherwise

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(FILES_PATH):
            await self._otherwise(scope, receive, send)
            return
        await _serve(scope, receive, send)


async def _serve(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a request.

    1. Refuse it unless its address is ours and good, it comes from where it may, and its account is still there.
    2. Wait a moment for a place.
    3. Send the file, or the part of it that was asked for, as fast as the reader takes it.
    """
    ticket = await _admitted(scope)
    if isinstance(ticket, FileAnswer):
        await _begin(send, ticket, more=False)
        return
    if not await _place(ticket.account_id):
        await _begin(send, refusal(503, retry_after=5), more=False)
        return
    try:
        await _send_file(scope, receive, send, ticket)
    finally:
        places().give_back(ticket.account_id)


async def _admitted(scope: Scope) -> Ticket | FileAnswer:
    """Return what the address says, or the refusal; without a good address it says no more than that there is none."""
    if scope["method"] not in {"GET", "HEAD"}:
        return refusal(405)
    if not settings.FILES_URL or not _may_come_from(_client(scope)):
        return refusal(404)
    try:
        ticket = tokens.read(scope["path"])
    except NotAnAddressError:
        return refusal(404)
    return await _why_not(ticket) or ticket


async def _why_not(ticket: Ticket) -> FileAnswer | None:
    """Return why the file is not served now, or ever again; None where it is."""
    if ticket.over:
        return refusal(410)
    if not requests.take(ticket.account_id, now=time.monotonic()):
        return refusal(429, retry_after=60)
    try:
        return None if await _in_thread(partial(_still_wanted, ticket)) else refusal(410)
    except DatabaseError:
        return refusal(503, retry_after=5)


def _still_wanted(ticket: Ticket) -> bool:
    """Decide whether the account of the address is still there, and its run, and whether both have the same owner."""
    try:
        accounts = Account.objects.filter(pk=ticket.account_id, archived_at=None, owner__is_active=True)
        owner = accounts.values_list("owner", flat=True).first()
        if owner is None:
            return False
        return ticket.run_id is None or Run.objects.filter(pk=ticket.run_id, owner=owner).exists()
    finally:
        connection.close()  # back to the pool


async def _place(account_id: int) -> bool:
    """Wait for a place; return whether there was one."""
    until = time.monotonic() + PLACE_SECONDS
    while places().take(account_id):
        if time.monotonic() > until:
            return False
        await asyncio.sleep(LOOK_AGAIN)
    return True


async def _send_file(scope: Scope, receive: Receive, send: Send, ticket: Ticket) -> None:
    try:
        file = await _in_thread(partial(_opened, ticket.file))
    except FileNotFoundError:
        await _begin(send, refusal(410), more=False)
        return
    except (OSError, SuspiciousOperation):
        log.exception("file_not_readable", account=ticket.account_id)
        await _begin(send, refusal(503, retry_after=5), more=False)
        return
    try:
        found = answer(
            _headers(scope),
            size=await _in_thread(lambda: file.seek(0, os.SEEK_END)),
            etag=etag_of(ticket.file),
            content_type=ticket.content_type,
            filename=ticket.filename,
            lasts=ticket.until - int(time.time()),
        )
        more = scope["method"] != "HEAD" and found.length > 0
        await _begin(send, found, more=more)
        if more:
            await _send_body(scope, receive, send, file, found)
    finally:
        await _in_thread(file.close)


async def _send_body(scope: Scope, receive: Receive, send: Send, file: BinaryIO, found: FileAnswer) -> None:
    """Send the bytes; cut the connection where they cannot be sent to the end, so that nobody takes a part for all."""
    leaving = asyncio.ensure_future(_left(receive))
    try:
        async with asyncio.timeout(SECONDS):
            whole = await _send_pieces(send, file, found, leaving)
    except TimeoutError:
        whole = False
        log.warning("file_reader_too_slow")
    except OSError:
        whole = False
        log.exception("file_not_readable")
    finally:
        leaving.cancel()
    if whole:
        await send({"type": "http.response.body", "body": b"", "more_body": False})
    elif (cut := scope.get("extensions", {}).get("paceline.cut")) is not None:
        cut()


async def _send_pieces(
    send: Send, file: BinaryIO, found: FileAnswer, leaving: "asyncio.Future[None]"
) -> bool:
    """Send all bytes; return whether all were sent, which ends early when the reader goes."""
    await _in_thread(partial(file.seek, found.start))
    left = found.length
    while left and not leaving.done():
        piece = await _in_thread(partial(file.read, min(PIECE, left)))
        if not piece:  # the file became shorter
            return False
        await send({"type": "http.response.body", "body": piece, "more_body": True})
        left -= len(piece)
    return not left


async def _begin(send: Send, found: FileAnswer, *, more: bool) -> None:
    headers = [
        (name.lower().encode(), value.encode("latin-1", "replace")) for name, value in found.headers.items()
    ]
    await send({"type": "http.response.start", "status": found.status, "headers": headers})
    if not more:
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _left(receive: Receive) -> None:
    """Return when the reader has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _opened(name: str) -> BinaryIO:
    return cast("BinaryIO", default_storage.open(name, "rb").file)


def _headers(scope: Scope) -> dict[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}


def _client(scope: Scope) -> str:
    """Return the address from which the request comes, as for pages: trusted proxies are believed, and nobody else."""
    peer = (scope.get("client") or ["127.0.0.1"])[0]  # a proxy on a Unix socket has no address
    forwarded = _headers(scope).get("x-forwarded-for", "")
    return client_address(peer, forwarded, networks_of(settings.TRUSTED_PROXIES))


def _may_come_from(client: str) -> bool:
    if not settings.FILES_FROM:
        return True
    try:
        found = ip_address(client)
    except ValueError:
        return False
    mapped = getattr(found, "ipv4_mapped", None) or found
    return any(mapped in network for network in networks_of(settings.FILES_FROM, setting="FILES_FROM"))


async def _in_thread(work: Callable[[], T]) -> T:
    return await asyncio.get_running_loop().run_in_executor(_threads(), work)


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=THREADS, thread_name_prefix="files")


@cache
def places() -> Shares:
    """Return the places for readers, of this process."""
    most = settings.FILES_READERS
    return Shares(total=most, each=max(1, most // EACH_SHARE))


class Requests:
    """Counts the requests for files of each account, minute by minute."""

    def __init__(self) -> None:
        self._minute = 0
        self._counts = Counter[int]()

    def take(self, account_id: int, *, now: float) -> bool:
        """Count a request; return whether it is within the limit. Called on the event loop alone."""
        if self._minute != (minute := int(now // 60)):
            self._minute, self._counts = minute, Counter()
        self._counts[account_id] += 1
        return self._counts[account_id] <= PER_MINUTE


requests = Requests()
