"""The gateway under /api/{account}/: messages, media, groups, typing. All requests carry the account's token."""

from urllib.parse import unquote

from aiohttp import web

from sandbox.account import State
from sandbox.answers import GATEWAY, answer, failure, perform
from sandbox.gateway import new_handle, now_ms
from sandbox.groups import group
from sandbox.incoming import MAX_ADDRESS, BadRequestError, read_object
from sandbox.media import MAX_SHOWN_BYTES, MAX_UPLOAD_BYTES, Upload
from sandbox.sessions import admitted

PAGE = 100
MAX_PAGE = 1000
SHOWN = ("seen", "typing", "paused")

routes = web.RouteTableDef()


@routes.post("/api/{account}/messages")
async def messages(request: web.Request) -> web.StreamResponse:
    at = now_ms()
    body = await request.read()
    headers = request.headers
    reply = request.app[GATEWAY].message(
        at=at,
        name=request.match_info["account"],
        authorization=headers.get("Authorization", ""),
        key=headers.get("Idempotency-Key", ""),
        body=body,
    )
    return await perform(request, reply)


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
