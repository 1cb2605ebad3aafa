"""A process that is a gateway: it takes messages with their file, or fetches the file, and counts the bytes.

`python -m benchmarks.files.gateway BYTES` prints its ports: of the gateway, and of a file with so many bytes. A
line on its input makes it print the bytes that came to the gateway, and those that it fetched; it ends with its input.
"""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO

ANSWER = json.dumps({"id": "an-id", "key": {"id": "an-id"}}).encode()
PIECE = 2**18


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchingGateway:
    url: str
    file_url: str
    asking: IO[str]
    telling: IO[str]

    def bytes_so_far(self) -> tuple[int, int]:
        """Return the bytes that came to the gateway, and those that it fetched."""
        self.asking.write("\n")
        self.asking.flush()
        received, fetched = self.telling.readline().split()
        return int(received), int(fetched)


@contextmanager
def fetching_gateway(file_bytes: int) -> Iterator[FetchingGateway]:
    command = [sys.executable, "-m", "benchmarks.files.gateway", str(file_bytes)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        gateway, file = process.stdout.readline().split()
        yield FetchingGateway(
            url=f"http://127.0.0.1:{gateway}",
            file_url=f"http://127.0.0.1:{file}",
            asking=process.stdin,
            telling=process.stdout,
        )
        process.stdin.close()


class _Gateway:
    def __init__(self) -> None:
        self.received = self.fetched = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                self.received += len(head)
                await self._take(reader, int(head.lower().split(b"content-length:")[1].split()[0]))
                writer.write(
                    b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
                    % (len(ANSWER), ANSWER)
                )
        except asyncio.IncompleteReadError:
            writer.close()

    async def _take(self, reader: asyncio.StreamReader, length: int) -> None:
        beginning = b""
        while length:
            piece = await reader.read(min(PIECE, length))
            self.received += len(piece)
            length -= len(piece)
            beginning = beginning or piece
        found = json.loads(beginning) if beginning.endswith(b"}") else {}
        url = found.get("media") or (found.get("file") or {}).get("url") or ""
        if url.startswith("http"):
            await self._fetch(url)

    async def _fetch(self, url: str) -> None:
        import aiohttp  # noqa: PLC0415 - only its own process needs it

        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            async for piece in answer.content.iter_any():
                self.fetched += len(piece)


async def _serve(file_bytes: int) -> None:
    gateway, content = _Gateway(), bytes(file_bytes)

    async def give(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % file_bytes)
        writer.write(content)
        await writer.drain()
        writer.close()

    servers = [
        await asyncio.start_server(each, "127.0.0.1", 0, limit=2**20) for each in (gateway.serve, give)
    ]
    print(*(each.sockets[0].getsockname()[1] for each in servers), flush=True)
    while await asyncio.to_thread(sys.stdin.readline):
        print(gateway.received, gateway.fetched, flush=True)


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1])))
