"""A thousand open pages watch a run, through a restart of Redis and one of the web server."""

import argparse
import asyncio
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import aiohttp
import psutil
from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import connection
from django.db.models import F
from django.test import Client, override_settings
from django.utils import timezone

from accounts.models import User
from benchmarks.tables import scratch
from config.embedded.process import until
from config.embedded.redis_server import Redis
from config.redis.client import client
from config.web import open_files
from delivery import live
from delivery.models import Run
from delivery.states import RunStatus
from reminders.models import Reminder

SOCKETS = 1_000
EVENTS = 20
TOTAL = 1_000
PATIENCE = 60.0  # seconds for all pages to hear of a change
AT_ONCE = 100  # pages that open in the same moment


class Page:
    """An open page, which connects again as static/js/live/socket.js does."""

    def __init__(self, address: str, headers: Mapping[str, str]) -> None:
        self.address, self.headers = address, headers
        self.sent = -1  # as the page shows it
        self.open = False
        self.lost = 0

    async def watch(self, session: aiohttp.ClientSession) -> None:
        failures = 0
        while True:
            with suppress(aiohttp.ClientError, OSError):
                async with session.ws_connect(self.address, headers=self.headers, max_msg_size=0) as opened:
                    self.open, failures = True, 0
                    async for message in opened:
                        self._hear(message.json())
            self.lost += 1
            self.open = False
            failures += 1
            await asyncio.sleep(min(30.0, 2.0 ** (failures - 1)) * (0.5 + random.random() / 2))

    def _hear(self, message: Mapping[str, Any]) -> None:
        if message["type"] == "run":
            self.sent = max(self.sent, message["counts"]["sent"])


class Web:
    """The web server, as the Procfile starts it."""

    def __init__(self, port: int, environment: Mapping[str, str], log: Path) -> None:
        self.port, self.environment, self.log = port, environment, log
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        daphne = str(Path(sys.executable).parent / "daphne")
        program = [
            daphne,
            "-v",
            "0",
            "--websocket_connect_timeout",
            "30",
            "-b",
            "127.0.0.1",
            "-p",
            str(self.port),
        ]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*program, "config.asgi:application"], env=dict(self.environment), stdout=log, stderr=log
            )

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait()

    @property
    def usage(self) -> psutil.Process:
        assert self.process is not None
        return psutil.Process(self.process.pid)

    @property
    def cpu(self) -> float:
        times = self.usage.cpu_times()
        return times.user + times.system

    def complaints(self) -> int:
        """Return the number of errors in its log."""
        return self.log.read_text(errors="replace").count("Traceback (most recent call last)")


def main(argv: Sequence[str]) -> dict[str, object]:
    parser = argparse.ArgumentParser(prog="python -m benchmarks live", description=__doc__)
    parser.add_argument("sockets", type=int, nargs="?", default=SOCKETS)
    sockets = parser.parse_args(argv).sockets
    open_files.allow(sockets)
    with (
        scratch.database("live") as name,
        _redis() as redis,
        _pointed_at(redis),
        tempfile.TemporaryDirectory() as at,
    ):
        run, cookie = _watched()
        web = Web(_free_port(), _environment(name, redis, sockets), Path(at) / "web.log")
        web.start()
        try:
            result = asyncio.run(_measure(web, redis, run, cookie, sockets))
        finally:
            web.stop()
    _print(result)
    return result


async def _measure(web: Web, redis: Redis, run: Run, cookie: str, sockets: int) -> dict[str, object]:
    host = f"127.0.0.1:{web.port}"
    headers = {"Cookie": cookie, "Origin": f"http://{host}"}
    pages = [Page(f"ws://{host}/ws/runs/{run.pk}/", headers) for _ in range(sockets)]
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        await _until(lambda: _answers(web.port), "the web server starts")
        tasks = await _open(pages, session)
        await _until(lambda: all(page.sent >= 0 for page in pages), "the pages hear how the run stands")
        began = web.cpu
        spent = [await _event(run, pages) for _ in range(EVENTS)]
        cpu, memory = (web.cpu - began) * 1000 / EVENTS, web.usage.memory_info().rss / 1e6
        after_redis = await _restarted(lambda: _restart(redis), run, pages)
        lost = sum(page.lost for page in pages)
        after_web = await _restarted(lambda: _restart_web(web), run, pages)
        missed = sum(1 for page in pages if page.sent < run.sent)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return {
        "sockets": sockets,
        "errors": lost + missed + web.complaints(),
        "ms_per_event": round(median(spent) * 1000),
        "cpu_ms_per_event": round(cpu),
        "rss_mb": round(memory),
        "redis_back_s": round(after_redis, 1),
        "web_back_s": round(after_web, 1),
        "ok": lost + missed + web.complaints() == 0,
    }


async def _open(pages: Sequence[Page], session: aiohttp.ClientSession) -> list[asyncio.Future[None]]:
    """Open the pages, so many at once as people would."""
    tasks: list[asyncio.Future[None]] = []
    for start in range(0, len(pages), AT_ONCE):
        opening = pages[start : start + AT_ONCE]
        tasks += [asyncio.ensure_future(page.watch(session)) for page in opening]
        await _until(partial(_all_open, opening), "the pages open")
    return tasks


def _all_open(pages: Sequence[Page]) -> bool:
    return all(page.open for page in pages)


async def _event(run: Run, pages: Sequence[Page]) -> float:
    """Change the run and announce it; return the seconds until every page shows it."""
    start = time.perf_counter()
    await sync_to_async(_send_one)(run)
    await _until(lambda: all(page.sent >= run.sent for page in pages), "every page hears of the change")
    spent = time.perf_counter() - start
    await asyncio.sleep(max(0.0, live.EVERY_MS / 1000 - spent))
    return spent


def _send_one(run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(sent=F("sent") + 1, pending=F("pending") - 1)
    run.sent += 1
    connection.close()  # that of this thread
    live.run_changed(run.pk, run.owner_id)


async def _restarted(restart: Callable[[], None], run: Run, pages: Sequence[Page]) -> float:
    """Restart a server; return the seconds until every page shows a change that was announced at once afterwards."""
    await sync_to_async(restart)()
    return await _event(run, pages)


def _restart(redis: Redis) -> None:
    """Kill Redis, and let it come back empty after a moment."""
    pid = redis.pid()
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    until(lambda: redis.pid() is None, seconds=PATIENCE)
    shutil.rmtree(redis.data)
    time.sleep(2)
    redis.start()


def _restart_web(web: Web) -> None:
    web.stop()
    web.start()
    until(lambda: _answers(web.port), seconds=PATIENCE)


async def _until(met: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + PATIENCE
    while not met():
        if time.monotonic() > end:
            raise RuntimeError(f"Within {PATIENCE:g} s it does not happen that {what}.")
        await asyncio.sleep(0.005)


def _answers(port: int) -> bool:
    with socket.socket() as asking:
        return asking.connect_ex(("127.0.0.1", port)) == 0


def _watched() -> tuple[Run, str]:
    """Return a run that is under way, and the cookie of its owner."""
    owner = User.objects.create(username="operator", password="!")
    run = Run.objects.create(
        reminder=Reminder.objects.create(owner=owner, name="Rent is due"),
        owner=owner,
        fired_at=timezone.now(),
        name="Rent is due",
        action="message",
        parts=[],
        zone="UTC",
        window_start_hour=0,
        window_end_hour=24,
        send_days=127,
        status=RunStatus.RUNNING,
        total=TOTAL,
        pending=TOTAL,
    )
    browser = Client()
    browser.force_login(owner)
    return run, f"{settings.SESSION_COOKIE_NAME}={browser.cookies[settings.SESSION_COOKIE_NAME].value}"


@contextmanager
def _redis() -> Iterator[Redis]:
    """Run a Redis that may be restarted."""
    home = Path(tempfile.mkdtemp(prefix="paceline-live-"))
    redis = Redis(home)
    redis.start()
    try:
        yield redis
    finally:
        redis.stop()
        shutil.rmtree(home)


@contextmanager
def _pointed_at(redis: Redis) -> Iterator[None]:
    """Let this process announce changes over that Redis."""
    layer: dict[str, Any] = settings.CHANNEL_LAYERS["default"]
    host = {**layer["CONFIG"]["hosts"][0], "address": redis.url}
    layers = {"default": {**layer, "CONFIG": {**layer["CONFIG"], "hosts": [host]}}}
    with override_settings(REDIS_URL=redis.url, CHANNEL_LAYERS=layers):
        client.cache_clear()
        yield
        live.flush()
    client.cache_clear()


def _environment(database: str, redis: Redis, sockets: int) -> dict[str, str]:
    url = urlunsplit(urlsplit(os.environ["DATABASE_URL"])._replace(path=f"/{database}"))
    more = {
        "SOCKETS": sockets + 100,
        "SOCKETS_PER_PERSON": sockets,
        "DATABASE_URL": url,
        "REDIS_URL": redis.url,
    }
    return os.environ | {name: str(value) for name, value in more.items()}


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def _print(result: Mapping[str, object]) -> None:
    print("| what | figure |\n|---|---:|")
    for name, value in result.items():
        print(f"| {name} | {value} |")
