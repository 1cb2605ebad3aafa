"""The data that the page reads."""

import asyncio
import re
from typing import Any

import aiohttp
import pytest

from sandbox.groups import group
from sandbox.page import STATIC
from sandbox.process import SandboxProcess

GROUP = group("choir", 0).id
PNG = b"\x89PNG\r\n\x1a\n picture"


async def send(client: aiohttp.ClientSession, to: str = GROUP, **message: Any) -> None:
    async with client.post(
        "/api/choir/messages", json={"to": to, **(message or {"text": "Hello"})}
    ) as answer:
        assert answer.status == 201


async def upload(client: aiohttp.ClientSession, content_type: str) -> str:
    headers = {"Content-Type": content_type, "X-Filename": "picture"}
    async with client.post("/api/choir/media", data=PNG, headers=headers) as answer:
        handle: str = (await answer.json())["handle"]
        return handle


async def view(client: aiohttp.ClientSession, **query: str) -> dict[str, Any]:
    async with client.get("/page/view", params=query) as answer:
        assert answer.status == 200
        found: dict[str, Any] = await answer.json()
        return found


async def test_the_page_and_all_it_names_are_served(client: aiohttp.ClientSession) -> None:
    async with client.get("/") as answer:
        html = await answer.text()
        assert "script-src" not in answer.headers["Content-Security-Policy"]
        assert answer.headers["Content-Security-Policy"].startswith("default-src 'self'")
    named = re.findall(r'(?:href|src)="(/static/[^"#]+)', html)
    assert len(named) > 5
    for path in named:
        async with client.get(path) as answer:
            assert answer.status == 200


def test_no_script_or_style_is_written_into_the_page() -> None:
    html = (STATIC / "index.html").read_text()
    assert "style=" not in html
    assert "<style" not in html
    assert not re.search(r"<script(?![^>]*src=)", html)
    assert not re.search(r"\son\w+=", html)


def test_scripts_put_words_in_as_words() -> None:
    for script in STATIC.glob("js/*.js"):
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write", script.read_text())


async def test_a_message_is_seen_in_its_chat(client: aiohttp.ClientSession) -> None:
    await send(client)
    seen = await view(client, account="choir", chat=GROUP)
    assert seen["accounts"]["shown"][0]["delivered"] == 1
    assert seen["chats"][0]["title"] == "Class 3B parents"
    assert seen["chats"][0]["unread"] == 1
    assert [bubble["text"] for bubble in seen["thread"]["bubbles"]] == ["Hello"]


async def test_groups_without_messages_come_after_those_with(client: aiohttp.ClientSession) -> None:
    await send(client, to=group("choir", 7).id)
    seen = await view(client, account="choir")
    assert seen["chats"][0]["to"] == group("choir", 7).id
    assert len(seen["chats"]) == 12
    assert "thread" not in seen


async def test_a_person_is_shown_by_the_number(client: aiohttp.ClientSession) -> None:
    await send(client, to="41791234567@c.us")
    assert (await view(client, account="choir"))["chats"][0]["title"] == "41791234567"


async def test_chats_and_accounts_are_found_by_name(client: aiohttp.ClientSession) -> None:
    await send(client)
    found = await view(client, account="choir", find_chat="CHESS", find_account="cho")
    assert [chat["title"] for chat in found["chats"]] == ["Chess club"]
    assert found["accounts"]["total"] == 1
    assert (await view(client, find_account="nobody"))["accounts"]["total"] == 0


async def test_a_chat_that_was_read_has_nothing_unread(client: aiohttp.ClientSession) -> None:
    await send(client)
    async with client.post(f"/page/read/choir/{GROUP}") as answer:
        assert answer.status == 204
    assert (await view(client, account="choir"))["chats"][0]["unread"] == 0


async def test_an_unknown_account_or_chat_is_empty(client: aiohttp.ClientSession) -> None:
    assert "account" not in await view(client, account="nobody", chat="x")
    await send(client)
    assert (await view(client, account="choir", chat="x"))["thread"]["bubbles"] == []


@pytest.mark.parametrize(
    ("given", "served"), [("image/png", "image/png"), ("text/html", "application/octet-stream")]
)
async def test_media_never_run_in_the_page(client: aiohttp.ClientSession, given: str, served: str) -> None:
    handle = await upload(client, given)
    await send(client, media=handle, caption="Look")
    async with client.get(f"/page/media/{handle}") as answer:
        assert answer.headers["Content-Type"] == served
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert await answer.read() == PNG
    bubble = (await view(client, account="choir", chat=GROUP))["thread"]["bubbles"][0]
    assert bubble["media"]["kept"]


async def test_media_whose_bytes_are_gone_are_still_named(
    process: SandboxProcess, client: aiohttp.ClientSession
) -> None:
    handle = await upload(client, "image/png")
    await send(client, media=handle, caption="Look")
    process.stop()
    process.start()
    bubble = (await view(client, account="choir", chat=GROUP))["thread"]["bubbles"][0]
    assert (bubble["media"]["name"], bubble["media"]["kept"]) == ("picture", False)
    async with client.get(f"/page/media/{handle}") as answer:
        assert answer.status == 404


async def test_a_page_hears_of_changes(client: aiohttp.ClientSession) -> None:
    async with client.get("/page/live") as events, asyncio.timeout(10):
        assert await events.content.readline() == b"data: changed\n"  # at once: read what there is
        await send(client)
        await events.content.readline()
        assert await events.content.readline() == b"data: changed\n"
