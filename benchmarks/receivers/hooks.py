"""A slow receiver of webhooks, which writes down what it was told.

`python -m benchmarks.receivers.hooks FILE MILLISECONDS` prints its port, answers each request after that time, and
serves until its input ends. Each line of the file is: the path, the sequence and the number of an event.
"""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def slow_receiver(file: Path, *, milliseconds: int) -> Iterator[str]:
    """Start one; yield its address."""
    command = [sys.executable, "-m", "benchmarks.receivers.hooks", str(file), str(milliseconds)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        process.stdin.close()


async def _serve(file: Path, seconds: float) -> None:
    from aiohttp import web  # noqa: PLC0415 - only its own process needs it

    with file.open("a", buffering=1) as out:

        async def take(request: web.Request) -> web.StreamResponse:
            data = (await request.json())["data"]
            await asyncio.sleep(seconds)
            out.write(f"{request.path} {data['sequence']} {data['number']}\n")
            return web.Response(status=204)

        app = web.Application()
        app.router.add_post("/{rest:.*}", take)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        print(runner.addresses[0][1], flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(_serve(Path(sys.argv[1]), int(sys.argv[2]) / 1000))
