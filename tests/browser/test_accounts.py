"""Accounts in a real browser against a real sandbox: added, paired, watched, paused."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer
from redis import Redis

from accounts.models import Account, User
from accounts.models.account import Channel
from delivery.pages.offers import offers
from reminders.conversations import replies
from sandbox.process import SandboxProcess
from tests.browser.conftest import PATIENCE, NewPage
from tests.factories import AccountFactory, OperatorFactory, RunAccountFactory, RunFactory

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxProcess]:
    with SandboxProcess(tmp_path_factory.mktemp("pairing") / "log.jsonl") as process:
        yield process


@pytest.fixture
def operator(transactional_db: None, redis: Redis, settings: Settings, live_server: LiveServer) -> User:
    settings.PUBLIC_URL = live_server.url
    return OperatorFactory.create(username="anna")


def fill_in(page: Page, gateway: SandboxProcess, name: str, *, pairing: str) -> None:
    page.goto("/accounts/new/")
    page.get_by_role("link", name="Sandbox").click()
    page.get_by_label("Name").fill(name)
    page.get_by_label("Established WhatsApp").check()
    page.get_by_label("Address", exact=True).fill(gateway.url)
    page.get_by_label("Account", exact=True).fill(name)
    page.get_by_label("Token").fill("a-token-nobody-sees")
    page.get_by_label("Pairing").select_option(pairing)
    page.get_by_role("button", name="Add and connect").click()


def test_an_account_is_added_paired_and_paused(
    new_page: NewPage, operator: User, gateway: SandboxProcess
) -> None:
    page = new_page(user=operator)
    fill_in(page, gateway, "choir-phone", pairing="yes")
    code = page.get_by_role("img", name="QR code that pairs choir-phone")
    expect(code).to_be_visible()
    expect(page.get_by_text("Code 1 of 6.")).to_be_visible()
    # It counts down by itself.
    seconds = page.locator("[data-countdown]")
    before = int(seconds.inner_text().removesuffix(" s"))
    expect(seconds).not_to_have_text(f"{before} s")

    page.get_by_label("Phone number").fill("+60 12-345 6789")
    page.get_by_role("button", name="Get a code").click()
    expect(page.locator("#typed-code")).to_have_text(re.compile(r"^\w{4}-\w{4}$"))

    gateway.behave("choir-phone", state="WORKING")  # somebody scans it
    expect(page.get_by_text("choir-phone is paired and ready to send.")).to_be_visible()
    expect(page.get_by_text("Ready. Nothing to send.")).to_be_visible()

    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_text("paused by anna").first).to_be_visible()
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_text("Resumed. The account can send again.")).to_be_visible()


def test_the_page_follows_what_its_service_reports(
    new_page: NewPage, operator: User, gateway: SandboxProcess
) -> None:
    page = new_page(user=operator)
    fill_in(page, gateway, "sports-phone", pairing="no")
    expect(page.get_by_text("sports-phone is connected and ready to send.")).to_be_visible()
    account = Account.objects.get(name="sports-phone")

    gateway.behave("sports-phone", state="STOPPED")
    page.wait_for_timeout(300)
    _until_reported(account, page)
    expect(page.get_by_role("heading", name="Offline")).to_be_visible()
    gateway.behave("sports-phone", state="WORKING")
    page.get_by_role("button", name="Reconnect").click()
    expect(page.get_by_text("sports-phone is connected.")).to_be_visible()


def _until_reported(account: Account, page: Page) -> None:
    """The work of the task that a worker would do."""
    for _ in range(PATIENCE * 10):
        replies.work(account.pk)
        account.refresh_from_db()
        if account.status == "offline":
            return
        page.wait_for_timeout(100)
    pytest.fail("The webhook did not arrive.")


def test_everything_can_be_done_without_javascript(
    new_page: NewPage, operator: User, gateway: SandboxProcess
) -> None:
    page = new_page(user=operator, javascript=False)
    fill_in(page, gateway, "plain-phone", pairing="yes")
    expect(page.get_by_role("img", name="QR code that pairs plain-phone")).to_be_visible()
    gateway.behave("plain-phone", state="WORKING")
    page.get_by_role("link", name="Refresh").click()
    expect(page.get_by_text("plain-phone is paired and ready to send.")).to_be_visible()


@pytest.fixture
def shown(operator: User, gateway: SandboxProcess) -> Account:
    """One with something in every part of its page."""
    credentials = {"base_url": gateway.url, "account": "shown", "token": "t"}
    account = AccountFactory.create(
        owner=operator, name="Office phone", profile="whatsapp_careful", credentials=credentials
    )
    RunAccountFactory.create(
        run=RunFactory.create(reminder__owner=operator, sent=30, pending=10), account=account
    )
    return account


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (360, "dark")])
def test_every_page_fits_its_screen_and_can_be_used_by_everybody(
    new_page: NewPage, operator: User, shown: Account, gateway: SandboxProcess, width: int, scheme: Any
) -> None:
    gateway.behave("shown", state="SCAN_QR_CODE", token="t")
    waiting = AccountFactory.create(
        owner=operator, name="New phone", pairing=True, credentials=dict(shown.credentials)
    )
    states = [
        AccountFactory.create(owner=operator, **{state: True})
        for state in ("unpaired", "paused", "offline", "flagged", "archived")
    ]
    addresses = [
        "/accounts/",
        "/accounts/?show=archived",
        "/accounts/?q=nobody",
        "/accounts/new/",
        *(
            f"/accounts/new/{channel}/{offer.kind}/"
            for channel in Channel.values
            for offer in offers(channel)
        ),
        *(f"/accounts/{account.pk}/" for account in states),
        *(f"/accounts/{shown.pk}/{part}" for part in ("", "edit/", "limits/", "log-out/", "archive/")),
        f"/accounts/{waiting.pk}/pair/",
    ]
    page = new_page(user=operator, width=width, scheme=scheme, axe=True)
    for address in addresses:
        page.goto(address)
        wide, room = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert wide <= room, address
        found: dict[str, Any] = page.evaluate("axe.run()")
        assert [v["id"] for v in found["violations"]] == [], address


@pytest.mark.parametrize(("width", "scheme"), [(360, "light"), (1280, "dark")])
def test_limits_typed_wrong_are_told_at_their_fields(
    new_page: NewPage, operator: User, shown: Account, width: int, scheme: Any
) -> None:
    page = new_page(user=operator, width=width, scheme=scheme, axe=True)
    page.goto(f"/accounts/{shown.pk}/limits/")
    page.evaluate("document.querySelectorAll('form').forEach((form) => (form.noValidate = true))")
    page.get_by_label("Per minute").fill("0")
    page.get_by_label("Shortest gap").fill("9")
    page.get_by_label("Longest gap").fill("3")
    page.get_by_role("button", name="Save limits").click()
    expect(page.get_by_text("Enter at least 1. To send nothing, pause the account.")).to_be_visible()
    boxes = [
        page.get_by_label(name, exact=True).bounding_box() for name in ("Per minute", "Per hour", "Per day")
    ]
    assert width == 360 or len({box["y"] for box in boxes if box}) == 1  # an error moves no neighbour
    found: dict[str, Any] = page.evaluate("axe.run()")
    assert [v["id"] for v in found["violations"]] == []
