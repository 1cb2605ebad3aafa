"""Sends an answer: whole, or broken as the behaviour wants."""

import asyncio
import json
from collections.abc import Mapping

from aiohttp import web

from sandbox.gateway import Gateway, Reply
from sandbox.verdict import Fault

GATEWAY = web.AppKey("gateway", Gateway)
JSON = {"Content-Type": "application/json"}
GARBAGE = b"<html><body>It works!</body></html>"


def answer(payload: object, status: int = 200) -> web.Response:
    return web.Response(status=status, body=json.dumps(payload).encode(), headers=JSON)


def failure(status: int, error: str, reason: str) -> web.Response:
    return answer({"error": error, "message": reason}, status)


async def perform(request: web.Request, reply: Reply) -> web.StreamResponse:
    """Wait as long as the reply says, then answer in its way."""
    if reply.delay:
        await asyncio.sleep(reply.delay)
    if reply.fault is Fault.HANG:
        # Ends when the client goes away: the server cancels handlers whose client left.
        await asyncio.Event().wait()
    if reply.fault is Fault.CUT:
        return await _cut(request, reply.payload)
    if reply.fault is Fault.GARBAGE:
        return web.Response(body=GARBAGE, content_type="text/html")
    response = answer(reply.payload, reply.status)
    if reply.retry_after:
        response.headers["Retry-After"] = str(reply.retry_after)
    return response


async def _cut(request: web.Request, payload: Mapping[str, object]) -> web.StreamResponse:
    """Announce the whole answer, send half of it, and close."""
    body = json.dumps(payload).encode()
    response = web.StreamResponse(status=201, headers=JSON | {"Content-Length": str(len(body))})
    await response.prepare(request)
    await response.write(body[: len(body) // 2])
    if request.transport is not None:
        request.transport.close()
    return response
