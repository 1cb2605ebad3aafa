"""The sandbox as its clients meet it: over HTTP, in a process of its own."""

import asyncio
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from sandbox import witness
from sandbox.process import PROJECT, SandboxProcess

MESSAGES = "/api/choir/messages"
HELLO = {"to": "g", "text": "Hello"}


async def status_of(client: aiohttp.ClientSession, path: str = MESSAGES, **options: Any) -> int:
    async with client.post(path, json=HELLO, **options) as answer:
        return answer.status


async def delivery(process: SandboxProcess) -> None:
    """Returns when the log has one."""
    async with asyncio.timeout(10):
        while not witness.deliveries(process.log):  # noqa: ASYNC110 - another process writes it
            await asyncio.sleep(0.01)


async def test_the_log_can_be_read_as_soon_as_the_answer_is_there(
    process: SandboxProcess, client: aiohttp.ClientSession
) -> None:
    for number in range(20):
        assert await status_of(client, headers={"Idempotency-Key": str(number)}) == 201
        assert [line["key"] for line in witness.deliveries(process.log)][-1] == str(number)


async def test_a_line_is_written_before_any_latency(
    process: SandboxProcess, client: aiohttp.ClientSession
) -> None:
    process.behave("choir", latency_ms=60_000)
    sending = asyncio.create_task(status_of(client))
    await delivery(process)
    assert not sending.done()
    sending.cancel()


async def test_a_client_that_leaves_early_does_not_unmake_the_delivery(
    process: SandboxProcess, client: aiohttp.ClientSession
) -> None:
    process.behave("choir", hang=1)
    with pytest.raises(TimeoutError):
        await status_of(client, timeout=aiohttp.ClientTimeout(total=0.3))
    process.behave("choir", hang=0)
    assert await status_of(client) == 201
    assert len(witness.deliveries(process.log)) == 2


async def test_a_cut_answer_is_cut(process: SandboxProcess, client: aiohttp.ClientSession) -> None:
    process.behave("choir", cut=1)
    async with client.post(MESSAGES, json=HELLO) as answer:
        assert answer.status == 201
        with pytest.raises(aiohttp.ClientPayloadError):
            await answer.read()
    assert len(witness.deliveries(process.log)) == 1


async def test_garbage_is_not_json(process: SandboxProcess, client: aiohttp.ClientSession) -> None:
    process.behave("choir", garbage=1)
    async with client.post(MESSAGES, json=HELLO) as answer:
        assert answer.status == 200
        assert (await answer.read()).startswith(b"<html>")


async def test_a_rate_limit_is_answered_with_retry_after(
    process: SandboxProcess, client: aiohttp.ClientSession
) -> None:
    process.behave("choir", rate_limit=1)
    assert await status_of(client) == 201
    async with client.post(MESSAGES, json=HELLO) as answer:
        assert answer.status == 429
        assert 1 <= int(answer.headers["Retry-After"]) <= 60


async def test_keys_survive_a_kill(process: SandboxProcess, client: aiohttp.ClientSession) -> None:
    key = {"Idempotency-Key": "k"}
    assert await status_of(client, headers=key) == 201
    await asyncio.to_thread(process.kill)  # the client hears that its connection is gone
    process.start()
    assert await status_of(client, headers=key) == 201
    assert len(witness.deliveries(process.log)) == 1


async def test_it_ends_at_once_although_requests_hang(
    process: SandboxProcess, client: aiohttp.ClientSession
) -> None:
    process.behave("choir", hang=1)
    sending = asyncio.create_task(status_of(client))
    await delivery(process)
    await asyncio.to_thread(process.stop)
    with pytest.raises(aiohttp.ClientError):
        await sending
    process.start()


async def test_groups_come_in_pages(process: SandboxProcess, client: aiohttp.ClientSession) -> None:
    async with client.get("/api/choir/groups", params={"limit": 5, "offset": 10}) as answer:
        found = (await answer.json())["groups"]
    assert len(found) == 2
    assert all(group["id"] and group["name"] and group["size"] for group in found)


@pytest.mark.parametrize("query", [{"limit": "x"}, {"offset": "-1"}])
async def test_a_page_that_is_none_is_refused(client: aiohttp.ClientSession, query: dict[str, str]) -> None:
    async with client.get("/api/choir/groups", params=query) as answer:
        assert answer.status == 400


@pytest.mark.parametrize("path", ["status", "groups", "qr"])
async def test_every_question_needs_the_token(client: aiohttp.ClientSession, path: str) -> None:
    assert await status_of(client) == 201
    async with client.get(f"/api/choir/{path}", headers={"Authorization": "Bearer wrong"}) as answer:
        assert answer.status == 401
        assert (await answer.json())["error"] == "unauthorized"


async def test_a_phone_that_is_not_connected_is_stopped(
    process: SandboxProcess, client: aiohttp.ClientSession
) -> None:
    process.behave("choir", not_connected=True, name="The choir")
    async with client.get("/api/choir/status") as answer:
        assert await answer.json() == {"state": "STOPPED", "name": "The choir"}


async def test_a_banned_account_has_no_groups_and_no_code(
    process: SandboxProcess, client: aiohttp.ClientSession
) -> None:
    process.behave("choir", state="BANNED")
    for path in ("groups", "qr"):
        async with client.get(f"/api/choir/{path}") as answer:
            assert (answer.status, (await answer.json())["error"]) == (403, "account_banned")


async def test_an_upload_gives_a_handle_that_messages_can_use(
    process: SandboxProcess, client: aiohttp.ClientSession
) -> None:
    headers = {"X-Filename": "F%C3%AAte.png", "Content-Type": "image/png"}
    async with client.post("/api/choir/media", data=b"x" * 300_000, headers=headers) as answer:
        assert answer.status == 201
        handle = (await answer.json())["handle"]
    async with client.post(MESSAGES, json={"to": "g", "media": handle, "caption": "Look"}) as answer:
        assert answer.status == 201
    [line] = witness.uploads(process.log)
    assert (line["bytes"], line["text"], line["type"]) == (300_000, "Fête.png", "image/png")


# Control


async def test_put_replaces_and_patch_changes(process: SandboxProcess, client: aiohttp.ClientSession) -> None:
    async with client.put("/control/choir", json={"latency_ms": 5, "cut": 1}) as answer:
        assert answer.status == 200
    async with client.patch("/control/choir", json={"cut": 0}) as answer:
        changed = await answer.json()
    assert (changed["latency_ms"], changed["cut"]) == (5, 0)
    async with client.put("/control/choir", json={}) as answer:
        assert (await answer.json())["latency_ms"] == 0
    async with client.get("/control/choir") as answer:
        assert (await answer.json())["state"] == "WORKING"


@pytest.mark.parametrize(
    "body", ["[]", "{", '{"mood": 1}', '{"state": "ASLEEP"}', '{"name": 5}', '{"token": ""}']
)
async def test_a_wish_that_cannot_be_granted_changes_nothing(
    client: aiohttp.ClientSession, body: str
) -> None:
    async with client.put("/control/choir", json={"latency_ms": 5}):
        pass
    async with client.patch("/control/choir", data=body) as answer:
        assert answer.status == 400
        assert (await answer.json())["message"]
    async with client.get("/control/choir") as answer:
        assert (await answer.json())["latency_ms"] == 5


async def test_a_token_can_be_set_beforehand(process: SandboxProcess, client: aiohttp.ClientSession) -> None:
    process.behave("choir", token="chosen")
    assert await status_of(client) == 401
    assert await status_of(client, headers={"Authorization": "Bearer chosen"}) == 201


async def test_reset_forgets_accounts_and_keeps_the_log(
    process: SandboxProcess, client: aiohttp.ClientSession
) -> None:
    await status_of(client)
    process.reset()
    async with client.get("/control/choir") as answer:
        assert answer.status == 404
    async with client.get("/control") as answer:
        assert await answer.json() == {}
    assert len(witness.deliveries(process.log)) == 1


async def test_one_account_can_be_forgotten(process: SandboxProcess, client: aiohttp.ClientSession) -> None:
    await status_of(client)
    await status_of(client, "/api/other/messages")
    async with client.delete("/control/choir") as answer:
        assert answer.status == 204
    async with client.get("/control") as answer:
        assert list(await answer.json()) == ["other"]


def test_a_sandbox_that_cannot_start_says_so(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(RuntimeError, match="did not start"):
        SandboxProcess(tmp_path / "log", groups=10**9)
    assert "--groups" in capfd.readouterr().err


def test_a_taken_port_is_told_in_one_sentence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        ended = start_in_vain("--port", str(server.getsockname()[1]), "--log", str(tmp_path / "log"))
    assert ended.returncode == 1
    assert ended.stderr.startswith("The sandbox cannot listen on 127.0.0.1:")
    assert ended.stderr.count("\n") == 1


def test_a_number_that_is_no_port_is_refused() -> None:
    assert "'99999' is not a number from 0 to 65535" in start_in_vain("--port", "99999").stderr


def start_in_vain(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "sandbox", *arguments]
    return subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=30, check=False)
