"""Serves the page at / and its data, and tells the page when there is something new to read."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aiohttp import web

from sandbox.account import MINUTE, Account
from sandbox.answers import GATEWAY, answer, failure
from sandbox.chats import Bubble, Chat
from sandbox.control import described
from sandbox.gateway import Gateway, now_ms
from sandbox.groups import group, name, number_of

STATIC = Path(__file__).parent / "static"
POLICY = (
    "default-src 'self'; img-src 'self' data:; base-uri 'none'; frame-ancestors 'none'; form-action 'none'"
)
MAX_ACCOUNTS_SHOWN = 60
MAX_CHATS_SHOWN = 80
MAX_GROUPS_SEARCHED = 2000
BREATH = 0.3  # seconds between two announcements to one page
HEARTBEAT = 15.0  # seconds after which a silent connection says something, so that proxies keep it open
SHOWABLE = frozenset(
    {"image/png", "image/jpeg", "image/gif", "image/webp", "video/mp4", "audio/mpeg", "audio/ogg"}
)

routes = web.RouteTableDef()
routes.static("/static", STATIC)


@routes.get("/")
async def index(_request: web.Request) -> web.FileResponse:
    headers = {
        "Content-Security-Policy": POLICY,
        "Cache-Control": "no-cache",
        "Referrer-Policy": "no-referrer",
    }
    return web.FileResponse(STATIC / "index.html", headers=headers)


@routes.get("/page/view")
async def view(request: web.Request) -> web.Response:
    """Return everything that the page shows now, in one snapshot."""
    gateway, query = request.app[GATEWAY], request.query
    account = gateway.accounts.get(query.get("account", ""))
    shown: dict[str, Any] = {"accounts": _accounts(gateway, query.get("find_account", ""))}
    if account is not None:
        shown["account"] = _account(account) | {
            "behaviour": described(account),
            "new_chats": account.new_chats.told(account.behaviour, now_ms()),
        }
        shown["chats"] = _chats(gateway, account, query.get("find_chat", ""))
        if to := query.get("chat", ""):
            shown["thread"] = _thread(gateway, account, to)
    return answer(shown)


@routes.get("/page/live")
async def live(request: web.Request) -> web.StreamResponse:
    """Send an event at every change, with a short pause in between (server-sent events)."""
    headers = {"Content-Type": "text/event-stream", "Cache-Control": "no-store"}
    response = web.StreamResponse(headers=headers)
    await response.prepare(request)
    with request.app[GATEWAY].feed.watch() as changes:
        changes.set()
        while True:
            await response.write(await _news(changes))
            await asyncio.sleep(BREATH)


@routes.post("/page/read/{account}/{to}")
async def mark_read(request: web.Request) -> web.Response:
    request.app[GATEWAY].read(request.match_info["account"], request.match_info["to"])
    return web.Response(status=204)


@routes.get("/page/media/{handle}")
async def content(request: web.Request) -> web.Response:
    """Return the bytes of an upload. Only types that a browser shows without running them keep their own type."""
    uploads, handle = request.app[GATEWAY].uploads, request.match_info["handle"]
    upload, found = uploads.get(handle), uploads.content(handle)
    if upload is None or found is None:
        return failure(404, "unknown_media", "These bytes are not kept any more.")
    kind = upload.content_type if upload.content_type in SHOWABLE else "application/octet-stream"
    headers = {"Content-Type": kind, "X-Content-Type-Options": "nosniff", "Cache-Control": "max-age=3600"}
    return web.Response(body=found, headers=headers)


async def _news(changes: asyncio.Event) -> bytes:
    try:
        await asyncio.wait_for(changes.wait(), HEARTBEAT)
    except TimeoutError:
        return b": still here\n\n"
    changes.clear()
    return b"data: changed\n\n"


def _accounts(gateway: Gateway, find: str) -> dict[str, Any]:
    """Return the accounts that match, the latest active first."""
    wanted = find.casefold()
    found = [
        a for a in gateway.accounts.values() if wanted in a.name.casefold() or wanted in a.title.casefold()
    ]
    found.sort(key=lambda account: (-account.last_at, account.name))
    return {"total": len(found), "shown": [_account(account) for account in found[:MAX_ACCOUNTS_SHOWN]]}


def _account(account: Account) -> dict[str, Any]:
    now = now_ms()
    return {
        "name": account.name,
        "title": account.title,
        "state": account.state_at(now),
        "delivered": account.delivered,
        "last_minute": account.received.count(MINUTE, now),
        "last_at": account.last_at,
    }


def _chats(gateway: Gateway, account: Account, find: str) -> list[dict[str, Any]]:
    """Return chats with messages, the latest first, then groups without messages."""
    shown: list[dict[str, Any]] = []
    for chat in _all_chats(gateway, account):
        if len(shown) == MAX_CHATS_SHOWN:
            break
        title = _title(account, chat.to)
        if find.casefold() in title.casefold() or find in chat.to:
            last = chat.bubbles[-1] if chat.bubbles else None
            shown.append(
                {
                    "to": chat.to,
                    "title": title,
                    "unread": chat.unread,
                    "last": _bubble(gateway, last) if last else None,
                }
            )
    return shown


def _all_chats(gateway: Gateway, account: Account) -> Iterator[Chat]:
    yield from gateway.chats.newest_first(account.name)
    for number in range(min(account.behaviour.groups, MAX_GROUPS_SEARCHED)):
        to = group(account.name, number).id
        if gateway.chats.get(account.name, to) is None:
            yield Chat(account=account.name, to=to)


def _thread(gateway: Gateway, account: Account, to: str) -> dict[str, Any]:
    chat = gateway.chats.get(account.name, to)
    number = number_of(account.name, to)
    return {
        "to": to,
        "title": _title(account, to),
        "members": 0 if number is None else group(account.name, number).size,
        "total": chat.total if chat else 0,
        "unread": chat.unread if chat else 0,
        "typing": account.types_in(to, now_ms()),
        "bubbles": [_bubble(gateway, bubble) for bubble in chat.bubbles] if chat else [],
    }


def _bubble(gateway: Gateway, bubble: Bubble) -> dict[str, Any]:
    upload = gateway.uploads.get(bubble.media) if bubble.media else None
    return {
        "id": bubble.id,
        "at": bubble.at,
        "text": bubble.text,
        "reply": bubble.reply,
        "media": {
            "handle": upload.handle,
            "name": upload.filename,
            "type": upload.content_type,
            "size": upload.size,
            "kept": gateway.uploads.content(upload.handle) is not None,
        }
        if upload
        else None,
    }


def _title(account: Account, to: str) -> str:
    number = number_of(account.name, to)
    return to.partition("@")[0] if number is None else name(number)
