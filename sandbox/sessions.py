"""Connects accounts, under /api/{account}/: sessions, pairing, and whether a number exists."""

from aiohttp import web

from sandbox.account import Account, State
from sandbox.answers import GATEWAY, answer, failure
from sandbox.gateway import now_ms
from sandbox.incoming import BadRequestError, read_object
from sandbox.reports import Webhook

routes = web.RouteTableDef()


@routes.put("/api/{account}/session")
async def start(request: web.Request) -> web.Response:
    """Start the session: `{"webhook": {"url", "secret"}, "pair": true}`, both optional."""
    wishes = read_object(await request.read())
    account = request.app[GATEWAY].start(
        at=now_ms(),
        name=request.match_info["account"],
        authorization=request.headers.get("Authorization", ""),
        webhook=_webhook(wishes.get("webhook")),
        pair=wishes.get("pair") is True,
    )
    return answer({"state": account.state, "name": account.title})


@routes.delete("/api/{account}/session")
async def log_out(request: web.Request) -> web.Response:
    account = admitted(request)
    account.log_out()
    request.app[GATEWAY].tell_state(account)
    return web.Response(status=204)


@routes.get("/api/{account}/status")
async def status(request: web.Request) -> web.Response:
    account = admitted(request)
    request.app[GATEWAY].tell_state(account)
    state = account.state_at(now_ms())
    if state is State.WORKING and account.behaviour.not_connected:
        state = State.STOPPED
    return answer({"state": state, "name": account.title})


@routes.get("/api/{account}/qr")
async def qr(request: web.Request) -> web.Response:
    account = unpaired(request)
    code = account.pairing_code(now_ms())
    request.app[GATEWAY].tell_state(account)
    if code is None:
        return failure(409, "already_connected", "The account is connected; there is nothing to scan.")
    return answer({"code": code[0], "expires_in_ms": code[1]})


@routes.post("/api/{account}/pairing-code")
async def pairing_code(request: web.Request) -> web.Response:
    """Return a code to type on the phone: `{"phone": "+4915112345678"}`."""
    phone = read_object(await request.read()).get("phone")
    if not isinstance(phone, str) or not phone.removeprefix("+").isdecimal():
        return failure(400, "bad_request", "`phone` is not a number.")
    account = unpaired(request)
    code = account.typed_code(now_ms())
    request.app[GATEWAY].tell_state(account)
    if code is None:
        return failure(409, "already_connected", "The account is connected; there is nothing to type.")
    return answer({"code": code})


@routes.get("/api/{account}/numbers/{address}")
async def number(request: web.Request) -> web.Response:
    account = admitted(request)
    return answer({"exists": request.match_info["address"] not in account.behaviour.unknown})


@routes.get("/api/{account}/new-chats")
async def new_chats(request: web.Request) -> web.Response:
    """Return the quota of new chats, how much of it is used, and until when new chats are locked."""
    account = admitted(request)
    return answer(account.new_chats.told(account.behaviour, now_ms()))


def admitted(request: web.Request) -> Account:
    authorization = request.headers.get("Authorization", "")
    return request.app[GATEWAY].admit(request.match_info["account"], authorization)


def unpaired(request: web.Request) -> Account:
    """Return the account, unless it was banned."""
    account = admitted(request)
    if account.state is State.BANNED:
        raise BadRequestError(403, "account_banned", "The account was banned.")
    return account


def _webhook(wish: object) -> Webhook | None:
    if wish is None:
        return None
    url, secret = (wish.get("url"), wish.get("secret")) if isinstance(wish, dict) else (None, None)
    if not isinstance(url, str) or not isinstance(secret, str) or not url.startswith(("http://", "https://")):
        raise BadRequestError(400, "bad_request", "`webhook` has an address and a secret.")
    return Webhook(url=url, secret=secret)
