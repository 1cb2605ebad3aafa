"""The page in a real browser: messages arrive while one looks, on a screen of any width."""

import json
from collections.abc import Iterator
from typing import Any
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from sandbox.groups import group
from sandbox.process import SandboxProcess
from tests.browser.chromium import chromium
from tests.browser.conftest import ARGUMENTS, AXE

pytestmark = pytest.mark.browser

GROUP = group("choir", 0)


def send(process: SandboxProcess, text: str, to: str = GROUP.id) -> None:
    headers = {"Authorization": "Bearer t"}
    body = json.dumps({"to": to, "text": text}).encode()
    urlopen(Request(f"{process.url}/api/choir/messages", data=body, headers=headers), timeout=10).close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = chromium()
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield opened
        opened.close()


@pytest.fixture(params=[(1280, "light"), (360, "dark")], ids=["desk", "phone"])
def page(browser: Browser, process: SandboxProcess, request: pytest.FixtureRequest) -> Iterator[Page]:
    width, scheme = request.param
    context = browser.new_context(
        base_url=process.url, viewport={"width": width, "height": 760}, color_scheme=scheme
    )
    context.add_init_script(path=AXE)
    page = context.new_page()
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    yield page
    context.close()
    assert not problems


def test_a_newcomer_sees_messages_arrive(page: Page, process: SandboxProcess) -> None:
    page.goto("/")
    expect(page.get_by_text("No account yet")).to_be_visible()
    send(process, "Rehearsal at <b>seven</b> 🎶")
    page.get_by_role("link", name="choir").click()
    row = page.get_by_role("link", name=GROUP.name)
    expect(row.get_by_label("1 unread")).to_be_visible()
    row.click()
    expect(page.get_by_text("Rehearsal at <b>seven</b> 🎶").last).to_be_visible()

    send(process, "Bring your scores")
    expect(page.locator(".bubble", has_text="Bring your scores")).to_be_visible()
    expect(page.locator(".badge")).to_have_count(0)


def test_one_can_write_back(page: Page, process: SandboxProcess) -> None:
    send(process, "Who comes?")
    page.goto(f"/#/choir/{GROUP.id}")
    page.get_by_label("Write back").fill("We do!")
    page.get_by_role("button", name="Send").click()
    expect(page.locator(".bubble.reply", has_text="We do!")).to_be_visible()
    expect(page.get_by_label("Write back")).to_have_value("")


def test_one_can_start_without_sending_anything(page: Page, process: SandboxProcess) -> None:
    page.goto("/")
    page.get_by_role("button", name="Make a practice account").click()
    expect(page.get_by_text("No messages yet").first).to_be_visible()


def test_one_can_play_with_failures(page: Page, process: SandboxProcess) -> None:
    send(process, "Hello")
    page.goto("/#/choir")
    panel = page.get_by_role("region", name="Behaviour of the account")
    opener = page.get_by_role("button", name="Behaviour of the account")
    if opener.get_attribute("aria-pressed") == "false":
        opener.click()
    panel.get_by_role("button", name="Hangs").click()
    expect(panel.get_by_role("button", name="Hangs")).to_have_attribute("aria-pressed", "true")
    assert process.behave("choir")["hang"] == 1

    panel.get_by_label("Messages a minute before 429").fill("7")
    panel.get_by_label("Messages a minute before 429").press("Enter")
    panel.get_by_role("button", name="Disconnect").click()
    expect(panel.get_by_text("Disconnected")).to_be_visible()
    changed = process.behave("choir")
    assert (changed["rate_limit"], changed["state"]) == (7, "STOPPED")


@pytest.mark.parametrize(
    ("address", "view"), [("/", "accounts"), ("/#/choir", "chats"), (f"/#/choir/{GROUP.id}", "thread")]
)
def test_every_view_fits_its_screen_and_can_be_used_by_everybody(
    page: Page, process: SandboxProcess, address: str, view: str
) -> None:
    send(process, "A word without an end: " + "x" * 300)
    page.goto(address)
    expect(page.locator("#account-rows .row")).to_have_count(1)
    expect(page.locator("#app")).to_have_attribute("data-view", view)
    width = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert width[0] <= width[1]
    found: dict[str, Any] = page.evaluate("axe.run()")
    assert [violation["id"] for violation in found["violations"]] == []
