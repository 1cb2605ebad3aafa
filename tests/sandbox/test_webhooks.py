"""The reports of the sandbox, sent to a listener of the test."""

import asyncio
import hmac
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from sandbox.process import SandboxProcess
from sandbox.reports import MOST_WAITING, Reports, Webhook
from sandbox.witness import read

SECRET = "s3cret"
WITHIN = 15.0  # seconds


class Listener:
    """Takes webhooks, and answers as the test wants."""

    def __init__(self) -> None:
        self.url = ""
        self.answers: list[int] = []  # the statuses to give; then 200
        self.heard: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    async def hear(self, request: web.Request) -> web.Response:
        body = await request.read()
        signed = request.headers["X-Sandbox-Timestamp"].encode() + b"." + body
        digest = hmac.new(SECRET.encode(), signed, "sha256").hexdigest()
        assert request.headers["X-Sandbox-Signature"] == f"sha256={digest}"
        self.heard.put_nowait(json.loads(body))
        return web.Response(status=self.answers.pop(0) if self.answers else 200)

    async def next(self) -> dict[str, Any]:
        return await asyncio.wait_for(self.heard.get(), WITHIN)


@pytest.fixture
async def listener() -> AsyncIterator[Listener]:
    heard = Listener()
    app = web.Application()
    app.router.add_post("/hook", heard.hear)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    heard.url = f"http://127.0.0.1:{runner.addresses[0][1]}/hook"
    yield heard
    await runner.cleanup()


async def register(client: aiohttp.ClientSession, listener: Listener, **wishes: object) -> None:
    wishes["webhook"] = {"url": listener.url, "secret": SECRET}
    async with client.put("/api/choir/session", json=wishes) as answer:
        assert answer.status == 200


async def send(client: aiohttp.ClientSession, to: str = "g") -> str:
    async with client.post("/api/choir/messages", json={"to": to, "text": "Hello"}) as answer:
        return str((await answer.json())["id"])


async def test_a_message_is_reported_as_delivered_and_then_as_read(
    client: aiohttp.ClientSession, listener: Listener
) -> None:
    await register(client, listener)
    sent = await send(client)
    delivered = await listener.next()
    assert (delivered["event"], delivered["state"], delivered["message"]["id"]) == (
        "receipt",
        "delivered",
        sent,
    )
    async with client.post("/page/read/choir/g"):
        pass
    read = await listener.next()
    assert (read["state"], read["message"]["id"]) == ("read", sent)
    assert read["id"] != delivered["id"]


async def test_what_somebody_writes_back_is_reported(
    client: aiohttp.ClientSession, listener: Listener, process: SandboxProcess
) -> None:
    await register(client, listener)
    written = process.write_back("choir", "g", "Count me in 🎶")
    report = await listener.next()
    assert report["event"] == "message"
    assert report["message"] == {"id": written, "from": "g", "chat": "g", "text": "Count me in 🎶"}


async def test_a_change_of_state_is_reported_once(
    client: aiohttp.ClientSession, listener: Listener, process: SandboxProcess
) -> None:
    await register(client, listener)
    process.behave("choir", state="STOPPED")
    process.behave("choir", latency_ms=1)
    process.behave("choir", state="WORKING")
    assert [(await listener.next())["state"], (await listener.next())["state"]] == ["STOPPED", "WORKING"]


async def test_a_lock_lets_known_chats_through_and_reports_new_ones(
    client: aiohttp.ClientSession, listener: Listener, process: SandboxProcess
) -> None:
    await register(client, listener)
    known = await send(client, "known")
    assert (await listener.next())["message"]["id"] == known
    process.behave("choir", lock_first_contacts=True)
    refused = await send(client, "new")
    reports = [await listener.next(), await listener.next()]
    assert {report["event"] for report in reports} == {"receipt", "first_contacts_locked"}
    [receipt] = [report for report in reports if report["event"] == "receipt"]
    assert (receipt["message"]["id"], receipt["state"], receipt["code"]) == (refused, "failed", "463")
    again = await send(client, "known")
    assert (await listener.next())["message"]["id"] == again


async def test_a_report_that_was_not_taken_is_sent_again(
    client: aiohttp.ClientSession, listener: Listener, process: SandboxProcess
) -> None:
    listener.answers = [503]
    await register(client, listener)
    process.write_back("choir", "g", "Hello?")
    assert await listener.next() == await listener.next()


async def test_a_restart_forgets_neither_the_listener_nor_replies(
    client: aiohttp.ClientSession, listener: Listener, process: SandboxProcess
) -> None:
    await register(client, listener)
    process.write_back("choir", "g", "Before")
    await listener.next()
    process.stop()
    process.start()
    process.write_back("choir", "g", "After")
    assert (await listener.next())["message"]["text"] == "After"
    async with client.get("/page/view", params={"account": "choir", "chat": "g"}) as answer:
        bubbles = (await answer.json())["thread"]["bubbles"]
    assert [(bubble["text"], bubble["reply"]) for bubble in bubbles] == [("Before", True), ("After", True)]


async def test_a_listener_that_is_away_costs_no_memory_without_end() -> None:
    reports = Reports()
    webhook = Webhook(url="http://x", secret=SECRET)
    for number in range(MOST_WAITING + 5):
        reports.add(webhook, at=1, account="a", event="message", number=number)
    assert json.loads((await reports.next()).body)["number"] == 5


@pytest.mark.parametrize(
    ("wish", "state", "delivered"),
    [("fail_late", "failed", False), ("bounce", "bounced", False), ("complain", "complained", True)],
)
async def test_a_message_that_was_taken_may_be_reported_as_lost_later(
    client: aiohttp.ClientSession,
    process: SandboxProcess,
    listener: Listener,
    wish: str,
    state: str,
    delivered: bool,
) -> None:
    await register(client, listener)
    process.behave("choir", **{wish: 1, "late_ms": 50})
    sent = await send(client)
    told = [await listener.next() for _ in range(2 if delivered else 1)]
    assert (told[-1]["state"], told[-1]["message"]["id"]) == (state, sent)
    assert told[-1]["reason"]
    assert [report["state"] for report in told[:-1]] == (["delivered"] if delivered else [])
    assert [line["delivered"] for line in read(process.log) if line["id"] == sent] == [delivered]


async def test_a_late_report_waits_for_its_time_and_holds_up_no_other(listener: Listener) -> None:
    reports, hook = Reports(), Webhook(url=listener.url, secret=SECRET)
    reports.add(hook, at=1, account="choir", event="late", after_ms=60)
    reports.add(hook, at=1, account="choir", event="now")
    told = [json.loads((await reports.next()).body) for _ in range(2)]
    assert [(each["event"], each["at"]) for each in told] == [("now", 1), ("late", 61)]
