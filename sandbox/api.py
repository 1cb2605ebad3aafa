"""What a gateway offers its clients, under /api/{account}/. Every request carries the account's token."""

from urllib.parse import unquote

from aiohttp import web

from sandbox.account import Account, State
from sandbox.answers import GATEWAY, answer, failure, perform
from sandbox.gateway import new_handle, now_ms
from sandbox.groups import group
from sandbox.incoming import BadRequestError
from sandbox.media import MAX_SHOWN_BYTES, MAX_UPLOAD_BYTES, Upload

PAGE = 100
MAX_PAGE = 1000

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


@routes.get("/api/{account}/status")
async def status(request: web.Request) -> web.Response:
    try:
        account = _admitted(request)
    except BadRequestError as error:
        return failure(error.status, error.error, error.reason)
    state = account.state_at(now_ms())
    if state is State.WORKING and account.behaviour.not_connected:
        state = State.STOPPED
    return answer({"state": state, "name": account.title})


@routes.get("/api/{account}/groups")
async def groups(request: web.Request) -> web.Response:
    try:
        account = _admitted(request)
        limit, offset = _whole(request, "limit", PAGE, MAX_PAGE), _whole(request, "offset", 0, 10**6)
    except BadRequestError as error:
        return failure(error.status, error.error, error.reason)
    if account.state is State.BANNED:
        return failure(403, "account_banned", "The account was banned.")
    numbers = range(offset, min(offset + limit, account.behaviour.groups))
    found = (group(account.name, number) for number in numbers)
    return answer({"groups": [{"id": g.id, "name": g.name, "size": g.size} for g in found]})


@routes.get("/api/{account}/qr")
async def qr(request: web.Request) -> web.Response:
    try:
        account = _admitted(request)
    except BadRequestError as error:
        return failure(error.status, error.error, error.reason)
    code = account.pairing_code(now_ms())
    if account.state is State.BANNED:
        return failure(403, "account_banned", "The account was banned.")
    if code is None:
        return failure(409, "already_connected", "The account is connected; there is nothing to scan.")
    request.app[GATEWAY].feed.touch()
    return answer({"code": code[0], "expires_in_ms": code[1]})


def _admitted(request: web.Request) -> Account:
    authorization = request.headers.get("Authorization", "")
    return request.app[GATEWAY].admit(request.match_info["account"], authorization)


def _whole(request: web.Request, name: str, default: int, most: int) -> int:
    value = request.query.get(name, str(default))
    if not value.isdecimal():
        raise BadRequestError(400, "bad_request", f"`{name}` is not a whole number.")
    return min(int(value), most)


async def _receive(request: web.Request) -> tuple[int, bytes | None]:
    """How large the body is, and its bytes where the page can show so many. Stops past the limit."""
    size, kept = 0, bytearray()
    async for chunk in request.content.iter_any():
        size += len(chunk)
        if size > MAX_UPLOAD_BYTES:
            break
        if size <= MAX_SHOWN_BYTES:
            kept += chunk
    return size, bytes(kept) if len(kept) == size else None
