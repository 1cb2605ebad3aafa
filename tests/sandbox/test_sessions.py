"""Connecting an account, over HTTP."""

import aiohttp
import pytest

from sandbox.log import read
from sandbox.process import SandboxProcess


async def state(client: aiohttp.ClientSession) -> str:
    async with client.get("/api/a/status") as answer:
        return str((await answer.json())["state"])


async def start(client: aiohttp.ClientSession, **wishes: object) -> str:
    async with client.put("/api/a/session", json=wishes) as answer:
        assert answer.status == 200
        return str((await answer.json())["state"])


async def test_a_new_account_is_connected_at_once_unless_pairing_is_wished(
    client: aiohttp.ClientSession, process: SandboxProcess
) -> None:
    assert await start(client) == "WORKING"
    process.reset()
    assert await start(client, pair=True) == "SCAN_QR_CODE"
    process.behave("a", state="WORKING")
    assert await start(client, pair=True) == "WORKING"


async def test_a_stopped_account_connects_again_with_the_phone_that_it_knows(
    client: aiohttp.ClientSession, process: SandboxProcess
) -> None:
    await start(client)
    process.behave("a", state="STOPPED")
    assert await start(client) == "WORKING"


async def test_logging_out_forgets_the_phone(client: aiohttp.ClientSession) -> None:
    await start(client)
    async with client.delete("/api/a/session") as answer:
        assert answer.status == 204
    assert await state(client) == "STOPPED"
    assert await start(client) == "SCAN_QR_CODE"


async def test_a_code_to_type_is_given_until_the_account_is_connected(
    client: aiohttp.ClientSession, process: SandboxProcess
) -> None:
    await start(client, pair=True)
    async with client.post("/api/a/pairing-code", json={"phone": "+4915112345678"}) as answer:
        code = (await answer.json())["code"]
    assert len(code) == 9
    assert code[4] == "-"
    process.behave("a", state="WORKING")
    async with client.post("/api/a/pairing-code", json={"phone": "+4915112345678"}) as answer:
        assert answer.status == 409


async def test_a_number_exists_unless_the_behaviour_says_otherwise(
    client: aiohttp.ClientSession, process: SandboxProcess
) -> None:
    process.behave("a", unknown=["49151"])
    async with client.get("/api/a/numbers/49151") as answer:
        assert await answer.json() == {"exists": False}
    async with client.get("/api/a/numbers/49152") as answer:
        assert await answer.json() == {"exists": True}


@pytest.mark.parametrize("webhook", ["http://x", {"url": "http://x"}, {"url": "ftp://x", "secret": "s"}])
async def test_a_webhook_that_is_none_is_refused(client: aiohttp.ClientSession, webhook: object) -> None:
    async with client.put("/api/a/session", json={"webhook": webhook}) as answer:
        assert answer.status == 400


@pytest.mark.parametrize("path", ["session", "qr", "pairing-code", "numbers/1"])
async def test_nothing_goes_with_another_token(client: aiohttp.ClientSession, path: str) -> None:
    await start(client)
    method = {"session": "PUT", "pairing-code": "POST"}.get(path, "GET")
    other = {"Authorization": "Bearer other"}
    async with client.request(method, f"/api/a/{path}", headers=other, json={"phone": "1"}) as answer:
        assert answer.status == 401


async def test_seen_and_typing_are_logged_and_shown_and_no_message(
    client: aiohttp.ClientSession, process: SandboxProcess
) -> None:
    async def thread() -> dict[str, object]:
        async with client.get("/page/view", params={"account": "a", "chat": "+49151"}) as answer:
            found: dict[str, object] = (await answer.json())["thread"]
            return found

    for state in ("seen", "typing"):
        async with client.post("/api/a/typing", json={"to": "+49151", "state": state}) as answer:
            assert answer.status == 204
    assert (await thread())["typing"] is True
    async with client.post("/api/a/typing", json={"to": "+49151", "state": "paused"}) as answer:
        assert answer.status == 204
    assert ((await thread())["typing"], (await thread())["total"]) == (False, 0)
    lines = [line for line in read(process.log) if line["kind"] == "typing"]
    assert [(line["to"], line["text"], line["delivered"]) for line in lines] == [
        ("+49151", "seen", False),
        ("+49151", "typing", False),
        ("+49151", "paused", False),
    ]


@pytest.mark.parametrize(
    "wish", [{}, {"to": "", "state": "typing"}, {"to": "+49", "state": "dancing"}, {"to": 5, "state": "seen"}]
)
async def test_typing_that_makes_no_sense_is_refused(client: aiohttp.ClientSession, wish: object) -> None:
    async with client.post("/api/a/typing", json=wish) as answer:
        assert answer.status == 400


async def test_a_quota_of_new_chats_refuses_the_next_one_and_says_how_much_is_used(
    client: aiohttp.ClientSession, process: SandboxProcess
) -> None:
    process.behave("a", new_chats=2, new_chats_ms=60_000)

    async def send(to: str) -> tuple[int, str]:
        async with client.post("/api/a/messages", json={"to": to, "text": "hi"}) as answer:
            return answer.status, str((await answer.json()).get("error", ""))

    async def told() -> dict[str, int]:
        async with client.get("/api/a/new-chats") as answer:
            return dict(await answer.json())

    assert [await send(to) for to in ("1", "1", "2", "group@g.us")] == [(201, "")] * 4
    assert await send("3") == (422, "new_chats_used_up")
    assert await send("1") == (201, "")
    found = await told()
    assert (found["total"], found["used"], found["until"] - found["since"]) == (2, 2, 60_000)
    assert found["locked_until"] == 0


@pytest.mark.parametrize("hides", [False, True])
async def test_a_lock_says_its_end_when_asked_unless_it_is_kept(
    client: aiohttp.ClientSession, process: SandboxProcess, hides: bool
) -> None:
    process.behave("a", lock_first_contacts=True, lock_ms=3_600_000, hides_lock=hides)
    async with client.post("/api/a/messages", json={"to": "1", "text": "hi"}) as answer:
        assert answer.status == 201
    async with client.get("/api/a/new-chats") as answer:
        assert bool((await answer.json())["locked_until"]) is not hides
