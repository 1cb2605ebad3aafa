"""A real Chromium on a real server. Every page is watched: an error in its console fails the test."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import pytest
from django.conf import settings as django_settings
from django.test import Client
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    WebSocket,
    expect,
    sync_playwright,
)
from pytest_django.live_server_helper import LiveServer

from accounts.models import User
from tests.browser.chromium import chromium
from tests.browser.site import Site

AXE = Path(__file__).parent / "vendor" / "axe.min.js"
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

PATIENCE = 30  # seconds: a busy machine is no failure
expect.set_options(timeout=PATIENCE * 1000)

Scheme = Literal["light", "dark"]
NewPage = Callable[..., Page]


# Per module: while Playwright is open, its event loop runs in this thread, and async tests cannot.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = chromium()
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        # Django takes Playwright's loop in this thread for an async view, and would refuse the ORM.
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        opened = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def site(django_db_setup: None, redis_url: str) -> Iterator[Site]:
    """Serve Paceline with its sockets, for modules whose `address` is that of this site."""
    with Site() as served:
        yield served


@pytest.fixture
def address(live_server: LiveServer) -> str:
    """Return the address of the pages; a module that needs sockets uses a `Site` instead."""
    return live_server.url


@pytest.fixture
def sockets() -> bool:
    """Return whether the address has sockets. Django's live server has none: pages get a silent one."""
    return False


@pytest.fixture
def new_page(browser: Browser, address: str, sockets: bool) -> Iterator[NewPage]:
    """Opens pages: `new_page(user=..., width=360, scheme="dark", javascript=False, axe=True)`.

    `troubled` is for a page whose requests are meant to fail.
    """
    problems: list[str] = []
    contexts: list[BrowserContext] = []

    def note(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            problems.append(message.text)

    def opener(
        *,
        user: User | None = None,
        width: int = 1280,
        scheme: Scheme = "light",
        javascript: bool = True,
        axe: bool = False,
        troubled: bool = False,
    ) -> Page:
        context = browser.new_context(
            base_url=address,
            viewport={"width": width, "height": 800},
            color_scheme=scheme,
            java_script_enabled=javascript,
            bypass_csp=axe,  # axe-core measures with styles of its own
        )
        contexts.append(context)
        if not sockets:
            context.route_web_socket(re.compile("/ws/"), lambda _: None)
        if axe:
            context.add_init_script(path=AXE)
        if user is not None:
            name = django_settings.SESSION_COOKIE_NAME
            context.add_cookies([{"name": name, "value": session_of(user), "url": address}])
        opened = context.new_page()
        if not troubled:  # a server that is away is an error to the console, and the point of the test
            opened.on("console", note)
        opened.on("pageerror", lambda error: problems.append(str(error)))
        return opened

    yield opener
    for context in contexts:
        context.close()
    assert not problems


def session_of(user: User) -> str:
    client = Client()
    client.force_login(user)
    return client.cookies[django_settings.SESSION_COOKIE_NAME].value


@pytest.fixture
def page(new_page: NewPage) -> Page:
    """A visitor's page, not logged in."""
    return new_page()


def watching(page: Page, path: str) -> Page:
    """Open the page and return once its sockets have told it something: every later change reaches it.

    The frames are listened for before the page is asked for: the first one may come while it is still loading. Each
    socket is listened to: one that is cut off on a busy machine comes back as another one.
    """
    silent: list[WebSocket] = []
    heard: list[WebSocket] = []

    def opened(socket: WebSocket) -> None:
        def told(_frame: object) -> None:
            if socket in silent:
                silent.remove(socket)
                heard.append(socket)

        def closed(_socket: object) -> None:
            if socket in silent:
                silent.remove(socket)

        silent.append(socket)
        socket.on("framereceived", told)
        socket.on("close", closed)

    page.on("websocket", opened)
    page.goto(path)
    for _ in range(PATIENCE * 20):
        if heard and not silent:
            return page
        page.wait_for_timeout(50)
    raise AssertionError("A socket of the page said nothing." if silent else "The page opened no socket.")
