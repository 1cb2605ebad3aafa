"""Controls of an account, under /control: no token, for tests, demonstrations and the page."""

import json
from typing import Any

from aiohttp import web

from sandbox.account import Account, State
from sandbox.answers import GATEWAY, answer, failure
from sandbox.behaviour import Behaviour, BehaviourError, as_json, changed
from sandbox.incoming import MAX_CHARS

routes = web.RouteTableDef()


@routes.get("/control")
async def read_all(request: web.Request) -> web.Response:
    return answer({name: described(account) for name, account in request.app[GATEWAY].accounts.items()})


@routes.delete("/control")
async def reset(request: web.Request) -> web.Response:
    request.app[GATEWAY].reset()
    return web.Response(status=204)


@routes.get("/control/{account}")
async def read(request: web.Request) -> web.Response:
    account = request.app[GATEWAY].accounts.get(request.match_info["account"])
    if account is None:
        return failure(404, "unknown_account", "There is no such account.")
    return answer(described(account))


@routes.delete("/control/{account}")
async def forget(request: web.Request) -> web.Response:
    request.app[GATEWAY].forget(request.match_info["account"])
    return web.Response(status=204)


@routes.put("/control/{account}")
async def replace(request: web.Request) -> web.Response:
    """Make the account, or set it again: every setting that the body does not name goes back to its default."""
    return await _set(request, keep=False)


@routes.patch("/control/{account}")
async def change(request: web.Request) -> web.Response:
    """Change the settings that the body names."""
    return await _set(request, keep=True)


@routes.post("/control/{account}/chats/{to}")
async def write_back(request: web.Request) -> web.Response:
    """Write to the account as a person in a chat: `{"text"}`."""
    gateway = request.app[GATEWAY]
    account, text = gateway.account(request.match_info["account"]), _wishes(await request.read()).get("text")
    if not isinstance(text, str) or not text.strip() or len(text) > MAX_CHARS:
        return failure(400, "bad_request", f"`text` is a text of at most {MAX_CHARS} characters.")
    return answer({"id": gateway.answer(account, request.match_info["to"], text)}, 201)


def described(account: Account) -> dict[str, Any]:
    return {"state": account.state, "name": account.title} | as_json(account.behaviour)


async def _set(request: web.Request, *, keep: bool) -> web.Response:
    gateway = request.app[GATEWAY]
    try:
        wishes = _wishes(await request.read())
        account = gateway.account(request.match_info["account"])
        _apply(account, wishes, account.behaviour if keep else gateway.defaults)
    except BehaviourError as error:
        return failure(400, "bad_request", str(error))
    gateway.tell_state(account)
    gateway.feed.touch()
    return answer(described(account))


def _wishes(body: bytes) -> dict[str, Any]:
    try:
        wishes = json.loads(body or b"{}")
    except ValueError:
        wishes = None
    if not isinstance(wishes, dict):
        raise BehaviourError("The body is not a JSON object.")
    return wishes


def _apply(account: Account, wishes: dict[str, Any], base: Behaviour) -> None:
    """Apply all of the changes, or none where one is not possible."""
    state, name, token = (wishes.pop(word, None) for word in ("state", "name", "token"))
    if state is not None and state not in set(State):
        raise BehaviourError(f"state is one of {', '.join(State)}.")
    if not all(word is None or (isinstance(word, str) and word) for word in (name, token)):
        raise BehaviourError("name and token are texts.")
    account.behave(changed(base, wishes))
    account.title = name or account.title
    account.token = token.encode() if token else account.token
    if state is not None:
        account.become(State(state))
