"""The sentences about accounts in trouble, in a real browser: words, ticking clocks, narrow and wide screens."""

import os
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect
from redis import Redis

from accounts.models import Account, User
from delivery.models import Run, RunTarget
from tests.browser.conftest import NewPage, Scheme
from tests.factories import AccountFactory, OperatorFactory, RunAccountFactory, RunFactory

pytestmark = pytest.mark.browser
REFUSED = "connection refused, 127.0.0.1:3000"


@pytest.fixture
def operator(transactional_db: None, redis: Redis) -> User:
    return OperatorFactory.create(username="anna")


def in_trouble(kind: str, cause: str) -> dict[str, Any]:
    now = timezone.now()
    since, again = now - timedelta(minutes=5), now + timedelta(seconds=150)
    return {"trouble_kind": kind, "trouble": cause, "trouble_since": since, "held_until": again}


STATES: Mapping[str, Callable[[], dict[str, Any]]] = {
    "down": lambda: in_trouble("unreachable", REFUSED),
    "errors": lambda: in_trouble("server_errors", "the gateway answered 500: Internal Server Error"),
    "busy": lambda: in_trouble("server_errors", "the gateway answered 503"),
    "slow": lambda: in_trouble("rate_limited", "the gateway answered 429: Too Many Requests"),
    "doubt": lambda: in_trouble("in_doubt", "no answer within 20 s, 127.0.0.1:3000"),
    "hangs": dict,
    "paces": lambda: {"waiting_for": "gap", "waiting_until": timezone.now() + timedelta(minutes=8)},
}
SAID = {
    "down": "Parents phone: no answer from the gateway since ",
    "errors": "Parents phone: the gateway answers with errors since ",
    "busy": "(the gateway answered 503). Next try in ",
    "slow": "Parents phone: WhatsApp asked us to slow down at ",
    "doubt": "Parents phone: the gateway does not say since ",
    "hangs": "Parents phone: the gateway has not answered for ",
    "paces": "Parents phone: next message in ",
}


def made(operator: User, state: str) -> tuple[Account, Run]:
    account = AccountFactory.create(owner=operator, name="Parents phone", **STATES[state]())
    run = RunFactory.create(reminder__owner=operator, reminder__around_the_clock=True, targets=3)
    RunAccountFactory.create(run=run, account=account)
    if state == "hangs":
        began = timezone.now() - timedelta(seconds=12)
        target = run.targets.order_by("pk")[0]
        RunTarget.objects.filter(pk=target.pk).update(
            account=account, status="sending", claimed_at=began, begun_at=began, attempts=1, fence=1
        )
        Run.objects.filter(pk=run.pk).update(pending=2, sending=1)
    return account, run


def ticks(page: Page) -> None:
    """The clock of the sentence moves by itself."""
    clock = page.locator("[data-why] [data-countdown], [data-why] [data-countup]").first
    before = clock.inner_text()
    expect(clock).not_to_have_text(before)


def fits(page: Page) -> None:
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def keep(page: Page, name: str) -> None:
    """Save a screenshot if SCREENSHOTS names a folder."""
    if folder := os.environ.get("SCREENSHOTS"):
        page.screenshot(path=str(Path(folder) / f"{name}.png"))


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (360, "dark")])
def test_a_run_says_how_its_account_is(
    new_page: NewPage, operator: User, state: str, width: int, scheme: Scheme
) -> None:
    account, run = made(operator, state)
    page = new_page(user=operator, width=width, scheme=scheme)
    page.goto(f"/runs/{run.pk}/")
    expect(page.locator("[data-why]")).to_contain_text(SAID[state])
    ticks(page)
    fits(page)
    keep(page, f"run-{state}-{width}-{scheme}")
    page.goto(f"/accounts/{account.pk}/")
    words = SAID[state].removeprefix("Parents phone: ")
    expect(page.locator("#account-now")).to_contain_text(words[:1].upper() + words[1:])
    fits(page)
    keep(page, f"account-{state}-{width}-{scheme}")


@pytest.mark.parametrize(
    ("width", "scheme"), [(1280, "light"), (1280, "dark"), (360, "light"), (360, "dark")]
)
def test_lists_and_the_dashboard_say_the_same(
    new_page: NewPage, operator: User, width: int, scheme: Scheme
) -> None:
    made(operator, "down")
    page = new_page(user=operator, width=width, scheme=scheme)
    for path in ("/", "/accounts/"):
        page.goto(path)
        expect(page.locator("main")).to_contain_text(f"({REFUSED}). Next try in 2 min")
        fits(page)
        keep(page, f"{path.strip('/') or 'dashboard'}-{width}-{scheme}")
