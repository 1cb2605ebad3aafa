"""A process that takes messages of every kind: any HTTP request, and e-mail by SMTP.

`python -m benchmarks.receivers.every_kind` prints its two ports and serves until its input ends.
"""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

# One answer for all: each kind of transport reads its own fields.
ANSWER = {
    "id": "an-id",
    "key": {"id": "an-id"},
    "messages": [{"id": "an-id"}],
    "event_id": "an-id",
    "object": "ChatStarted",
    "message_id": "an-id",
    "To": "reader@example.com",
    "ErrorCode": 0,
    "Message": "OK",
    "MessageID": "an-id",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Receiver:
    http: int
    smtp: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.http}"


@contextmanager
def receiver() -> Iterator[Receiver]:
    command = [sys.executable, "-m", "benchmarks.receivers.every_kind"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        http, smtp = process.stdout.readline().split()
        yield Receiver(http=int(http), smtp=int(smtp))
        process.stdin.close()


async def _serve() -> None:
    from aiohttp import web  # noqa: PLC0415 - only its own process needs these
    from aiosmtpd.handlers import Sink  # noqa: PLC0415
    from aiosmtpd.smtp import SMTP  # noqa: PLC0415

    async def take(request: web.Request) -> web.StreamResponse:
        await request.read()
        return web.json_response(ANSWER)

    app = web.Application()
    app.router.add_route("*", "/{rest:.*}", take)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    loop = asyncio.get_running_loop()
    mail = await loop.create_server(lambda: SMTP(Sink(), hostname="receiver"), "127.0.0.1", 0)
    print(runner.addresses[0][1], mail.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(_serve())
