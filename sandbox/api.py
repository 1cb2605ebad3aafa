"""The gateway under /api/{account}/: messages, media, groups, typing. All requests carry the account's token."""

import asyncio
from urllib.parse import unquote

from aiohttp import web

from sandbox.account import State
from sandbox.answers import GATEWAY, answer, failure, perform
from sandbox.gateway import Gateway, new_handle, now_ms
from sandbox.groups import group
from sandbox.incoming import MAX_ADDRESS, BadRequestError, Incoming, parse, read_object
from sandbox.log import Line
from sandbox.media import MAX_SHOWN_BYTES, MAX_UPLOAD_BYTES, TakenFile, Upload, take
from sandbox.sessions import admitted

PAGE = 100
MAX_PAGE = 1000
MOST_WITH_FILE = MAX_UPLOAD_BYTES * 4 // 3 + 2**20  # base64 makes a file larger by a third
SHOWN = ("seen", "typing", "paused")

routes = web.RouteTableDef()


@routes.post("/api/{account}/messages")
async def messages(request: web.Request) -> web.StreamResponse:
    at, gateway = now_ms(), request.app[GATEWAY]
    body = await request.clone(client_max_size=MOST_WITH_FILE).read()
    name, authorization = request.match_info["account"], request.headers.get("Authorization", "")
    incoming = _with_file(gateway, name, authorization, body)
    later = incoming is not None and bool(incoming.file and incoming.file.url) and _is_late(gateway, name)
    file = await _taken(gateway, name, incoming) if incoming is not None and not later else None
    reply = gateway.message(
        at=at,
        name=name,
        authorization=authorization,
        key=request.headers.get("Idempotency-Key", ""),
        body=body,
        file=file,
        later=later,
    )
    if incoming is not None and reply.awaits_file is not None:
        fetching = asyncio.create_task(_fetch_late(gateway, name, incoming, reply.awaits_file))
        _fetching.add(fetching)
        fetching.add_done_callback(_fetching.discard)
    return await perform(request, reply)


_fetching: set[asyncio.Task[None]] = set()


def _with_file(gateway: Gateway, name: str, authorization: str, body: bytes) -> Incoming | None:
    """Return the message if it comes with a file, of an account that may send; else the gateway sees to it."""
    try:
        gateway.admit(name, authorization)
        incoming = parse(body)
    except BadRequestError:
        return None
    return incoming if incoming.file else None


def _is_late(gateway: Gateway, name: str) -> bool:
    return gateway.account(name).behaviour.fetches_late


async def _taken(gateway: Gateway, name: str, incoming: Incoming) -> TakenFile | None:
    """Take the file of a message; a fetch is written to the log."""
    if incoming.file is None:
        return None
    file = await take(incoming.file, blind=gateway.account(name).behaviour.cannot_fetch)
    if incoming.file.url:
        gateway.fetched(name, file)
    return file


async def _fetch_late(gateway: Gateway, name: str, incoming: Incoming, line: Line) -> None:
    account = gateway.account(name)
    await asyncio.sleep(account.behaviour.late_ms / 1000)
    file = await _taken(gateway, name, incoming)
    if file is not None:
        gateway.arrived(account, incoming, line, file)


@routes.post("/api/{account}/media")
async def media(request: web.Request) -> web.StreamResponse:
    at = now_ms()
    size, content = await _receive(request)
    upload = Upload(
        handle=new_handle(),
        account=request.match_info["account"],
        filename=unquote(request.headers.get("X-Filename", "file")),
        content_type=request.content_type,
        size=size,
    )
    reply = request.app[GATEWAY].upload(
        at=at,
        name=upload.account,
        authorization=request.headers.get("Authorization", ""),
        upload=upload,
        content=content,
    )
    return await perform(request, reply)


@routes.get("/api/{account}/groups")
async def groups(request: web.Request) -> web.Response:
    account = admitted(request)
    limit, offset = _whole(request, "limit", PAGE, MAX_PAGE), _whole(request, "offset", 0, 10**6)
    if account.state is State.BANNED:
        return failure(403, "account_banned", "The account was banned.")
    numbers = range(offset, min(offset + limit, account.behaviour.groups))
    found = (group(account.name, number) for number in numbers)
    return answer({"groups": [{"id": g.id, "name": g.name, "size": g.size} for g in found]})


@routes.post("/api/{account}/typing")
async def typing(request: web.Request) -> web.Response:
    """Show a state in a chat: `{"to": ..., "state": "seen" | "typing" | "paused"}`. It counts nowhere."""
    account = admitted(request)
    wish = read_object(await request.read())
    to, state = wish.get("to"), wish.get("state")
    if not isinstance(to, str) or not 0 < len(to) <= MAX_ADDRESS:
        raise BadRequestError(400, "bad_request", "`to` is missing or too long.")
    if state not in SHOWN:
        raise BadRequestError(400, "bad_request", f"`state` is one of {', '.join(SHOWN)}.")
    request.app[GATEWAY].typing(account, to, state, at=now_ms())
    return web.Response(status=204)


def _whole(request: web.Request, name: str, default: int, most: int) -> int:
    value = request.query.get(name, str(default))
    if not value.isdecimal():
        raise BadRequestError(400, "bad_request", f"`{name}` is not a whole number.")
    return min(int(value), most)


async def _receive(request: web.Request) -> tuple[int, bytes | None]:
    """Return the size of the body, and its bytes where the page can show so many. Stops past the limit."""
    size, kept = 0, bytearray()
    async for chunk in request.content.iter_any():
        size += len(chunk)
        if size > MAX_UPLOAD_BYTES:
            break
        if size <= MAX_SHOWN_BYTES:
            kept += chunk
    return size, bytes(kept) if len(kept) == size else None
