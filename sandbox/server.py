"""The web application, its start and its end."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from aiohttp import web
from aiohttp.typedefs import Handler

from sandbox import api, control, page, sessions
from sandbox.answers import GATEWAY, failure
from sandbox.behaviour import Behaviour
from sandbox.gateway import Gateway
from sandbox.incoming import BadRequestError
from sandbox.log import Log
from sandbox.sender import send_reports

MAX_JSON = 2 * 2**20
BACKLOG = 2048  # a thousand accounts may connect at one moment


class CannotListenError(Exception):
    """Raised when the sandbox cannot listen at its address; the text says why and what to do."""

    def __init__(self, host: str, port: int, error: OSError) -> None:
        # An unknown host name has an error number below zero, with its own words.
        number = error.errno or 0
        why = os.strerror(number) if number > 0 else error.strerror or str(error)
        super().__init__(
            f"The sandbox cannot listen on {host}:{port}: {why.lower()}. "
            "Choose another port with --port or SANDBOX_PORT (0 takes a free one), or another --host."
        )


def make_app(gateway: Gateway) -> web.Application:
    app = web.Application(client_max_size=MAX_JSON, middlewares=[refuse])
    app[GATEWAY] = gateway
    for part in (api, sessions, control, page):
        app.add_routes(part.routes)
    app.cleanup_ctx.append(reporting)
    return app


@web.middleware
async def refuse(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except BadRequestError as error:
        return failure(error.status, error.error, error.reason)


async def reporting(app: web.Application) -> AsyncIterator[None]:
    """Sends webhooks as long as the application runs."""
    sender = asyncio.create_task(send_reports(app[GATEWAY].reports))
    yield
    sender.cancel()
    await asyncio.wait([sender])


async def serve(
    *, host: str, port: int, log: Path, defaults: Behaviour, ready: Callable[[str], None]
) -> None:
    """Serve until SIGTERM or SIGINT; `ready` is called with the address once requests are answered."""
    log_file = Log(log)
    gateway = Gateway(log_file, defaults=defaults)
    gateway.restore()
    runner = web.AppRunner(
        make_app(gateway), access_log=None, handler_cancellation=True, shutdown_timeout=0.5
    )
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, host, port, backlog=BACKLOG).start()
        except OSError as error:
            raise CannotListenError(host, port, error) from error
        ready(f"http://{host}:{runner.addresses[0][1]}")
        await _told_to_stop()
    finally:
        await runner.cleanup()
        log_file.close()


async def _told_to_stop() -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await stop.wait()
