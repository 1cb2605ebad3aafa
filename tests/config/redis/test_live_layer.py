"""The channel layer of live pages, on a Redis of the test's own that is killed and started again, empty."""

import asyncio
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis as redis_py
from asgiref.sync import sync_to_async

from config.embedded.process import until
from config.embedded.redis_server import Redis
from config.redis import live_layer
from config.redis.live_layer import CONNECTIONS, LiveLayer

SOCKETS = 3 * CONNECTIONS  # more than redis-py's 100
WITHIN = 30.0


@pytest.fixture
def server() -> Iterator[Redis]:
    home = Path(tempfile.mkdtemp(prefix="paceline-live-"))  # short: it holds the path of a socket
    server = Redis(home)
    server.start()
    yield server
    server.stop()
    shutil.rmtree(home)


def layer_of(server: Redis) -> LiveLayer:
    host = {"address": server.url, "socket_timeout": 15, "socket_connect_timeout": 2}
    return LiveLayer(hosts=[host], prefix="test")


def kill(server: Redis) -> None:
    pid = server.pid()
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    assert until(lambda: server.pid() is None, seconds=WITHIN)


def start_empty(server: Redis) -> None:
    shutil.rmtree(server.data)
    server.start()


def members(server: Redis, group: str) -> int:
    with redis_py.Redis.from_url(server.url) as client:
        return int(client.zcard(f"test:group:{group}"))


class Page:
    """A socket that notes what it hears."""

    def __init__(self, layer: LiveLayer, channel: str) -> None:
        self.layer, self.channel, self.heard = layer, channel, list[str]()

    async def listen(self) -> None:
        while True:
            message: dict[str, Any] = await self.layer.receive(self.channel)
            self.heard.append(message["type"])


async def open_pages(layer: LiveLayer, count: int, group: str = "run-1") -> list[Page]:
    pages = [Page(layer, await layer.new_channel()) for _ in range(count)]
    await asyncio.gather(*(layer.group_add(group, page.channel) for page in pages))
    return pages


async def met(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + WITHIN
    while not condition():
        assert time.monotonic() < end, "It does not happen."
        await asyncio.sleep(0.05)


async def while_listening(pages: list[Page], what: Callable[[], Awaitable[None]]) -> None:
    """Do something while the pages listen; none of them may end with an error meanwhile."""
    listeners = [asyncio.ensure_future(page.listen()) for page in pages]
    try:
        await what()
        ended = [listener.exception() for listener in listeners if listener.done()]
        assert ended == []
    finally:
        for listener in listeners:
            listener.cancel()
        await asyncio.gather(*listeners, return_exceptions=True)
        await pages[0].layer.close_pools()


async def test_more_sockets_than_connections_join_at_once_and_hear_everything(server: Redis) -> None:
    layer = layer_of(server)
    pages = await open_pages(layer, SOCKETS)

    async def send() -> None:
        for _ in range(3):
            await layer.group_send("run-1", {"type": "run.changed"})
        await met(lambda: all(page.heard == ["run.changed"] * 3 for page in pages))

    await while_listening(pages, send)
    with redis_py.Redis.from_url(server.url) as client:
        assert client.info("stats")["total_connections_received"] <= CONNECTIONS + 20


async def test_sockets_outlive_a_redis_that_comes_back_empty(server: Redis) -> None:
    layer = layer_of(server)
    pages = await open_pages(layer, SOCKETS)

    async def restart() -> None:
        await sync_to_async(kill)(server)
        await asyncio.sleep(2 * live_layer.PAUSE_SECONDS)
        await sync_to_async(start_empty)(server)
        await met(lambda: all("live.again" in page.heard for page in pages))
        assert await sync_to_async(members)(server, "run-1") == SOCKETS
        await layer.group_send("run-1", {"type": "run.changed"})
        await met(lambda: all(page.heard[-1] == "run.changed" for page in pages))

    await while_listening(pages, restart)
    assert not any("live.away" in page.heard for page in pages), "It was away for a moment only."


async def test_sockets_are_told_once_when_redis_stays_away(
    server: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_layer, "PATIENCE_SECONDS", 0.0)
    layer = layer_of(server)
    pages = await open_pages(layer, 5)

    async def stay_away() -> None:
        await sync_to_async(kill)(server)
        await met(lambda: all(page.heard for page in pages))
        await asyncio.sleep(4 * live_layer.PAUSE_SECONDS)
        assert [page.heard for page in pages] == [["live.away"]] * 5
        for page in pages:
            await layer.group_discard("run-1", page.channel)  # as a socket does that closes: no error

    await while_listening(pages, stay_away)


async def test_memberships_are_renewed_and_those_of_a_killed_process_are_forgotten(
    server: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_layer, "RENEW_SECONDS", 0.0)
    alive, killed = layer_of(server), layer_of(server)
    [page], _gone = await open_pages(alive, 1), await open_pages(killed, 3)
    assert await sync_to_async(members)(server, "run-1") == 4

    async def later() -> None:
        with redis_py.Redis.from_url(server.url) as client:
            now = time.time()
            for member in client.zrange("test:group:run-1", 0, -1):
                client.zadd("test:group:run-1", {member: now - live_layer.FORGET_SECONDS - 1})
            await met(lambda: client.zcount("test:group:run-1", now - 1, "+inf") == 1)
        await alive.group_send("run-1", {"type": "run.changed"})
        await met(lambda: page.heard == ["run.changed"])
        assert await sync_to_async(members)(server, "run-1") == 1

    await while_listening([page], later)
    await killed.close_pools()


async def test_a_group_that_nobody_renews_ends_by_itself(server: Redis) -> None:
    layer = layer_of(server)
    await open_pages(layer, 1)
    with redis_py.Redis.from_url(server.url) as client:
        assert 0 < client.ttl("test:group:run-1") <= live_layer.FORGET_SECONDS
    await layer.close_pools()


async def test_a_message_for_a_socket_that_is_gone_is_kept_nowhere(server: Redis) -> None:
    layer = layer_of(server)
    page, gone = await open_pages(layer, 2)

    async def send() -> None:
        del layer._groups[gone.channel]  # it left while Redis was away, which still has it
        await layer.group_send("run-1", {"type": "run.changed"})
        await met(lambda: page.heard == ["run.changed"])
        assert gone.channel not in layer.receive_buffer

    await while_listening([page], send)
