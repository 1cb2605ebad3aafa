"""The test to oneself in a real browser: the address is confirmed by a code that really arrives."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from redis import Redis

from accounts.models import TestMessage, User
from delivery.trial import send, store
from reminders.models import Reminder
from sandbox.process import SandboxProcess
from sandbox.witness import deliveries
from tests.browser.conftest import NewPage, Scheme
from tests.factories import AccountFactory, OperatorFactory, RecipientFactory, ReminderFactory

pytestmark = pytest.mark.browser
TO = "+60 12-345 6789"


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxProcess]:
    with SandboxProcess(tmp_path_factory.mktemp("trial") / "log.jsonl") as process:
        yield process


@pytest.fixture
def operator(transactional_db: None, redis: Redis) -> User:
    return OperatorFactory.create(username="anna")


def ready(operator: User, gateway: SandboxProcess, name: str) -> Reminder:
    credentials = {"base_url": gateway.url, "account": name, "token": "a-token-of-the-trial"}
    account = AccountFactory.create(owner=operator, credentials=credentials, own_address="")
    people = [RecipientFactory.create(owner=operator, name="Garden club")]
    return ReminderFactory.create(owner=operator, accounts=[account], recipients=people)


def deliver(page: Page) -> None:
    """Do what the worker does with the test that the page waits for."""
    trial = page.url.partition("test=")[2].partition("&")[0]
    send.send(trial)
    found = store.find(trial)
    assert found is not None
    expect(page.locator("#test-result")).to_contain_text(found.sentence)


def keep(page: Page, name: str) -> None:
    """Save a screenshot if SCREENSHOTS names a folder."""
    if folder := os.environ.get("SCREENSHOTS"):
        page.locator("#test").screenshot(path=str(Path(folder) / f"{name}.png"))


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (360, "dark")])
def test_an_address_is_confirmed_once_and_then_gets_tests(
    new_page: NewPage, operator: User, gateway: SandboxProcess, width: int, scheme: Scheme
) -> None:
    name = f"trial-{width}"
    reminder = ready(operator, gateway, name)
    page = new_page(user=operator, width=width, scheme=scheme)
    page.goto(f"/reminders/{reminder.pk}/review#test")
    page.get_by_label("To yourself").fill(TO)
    page.get_by_role("button", name="Send a test").click()
    expect(page.get_by_role("alert")).to_contain_text("is not confirmed as yours yet")
    expect(page.get_by_label("To yourself")).to_have_value(TO)
    keep(page, f"trial-unconfirmed-{width}")
    page.get_by_role("button", name="Send me a code").click()
    deliver(page)
    keep(page, f"trial-code-{width}")
    [code] = [line["text"].split()[0] for line in deliveries(gateway.log) if line["account"] == name]
    page.get_by_label("Code", exact=True).fill(code)
    page.get_by_label("Code", exact=True).press("Enter")
    page.wait_for_url("**test=**")
    deliver(page)
    keep(page, f"trial-sent-{width}")
    assert TestMessage.objects.filter(kind="test", address="+60123456789").count() == 1
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    page.goto(f"/reminders/{reminder.pk}/review#test")
    expect(page.get_by_label("To yourself")).to_have_value("+60123456789")
    expect(page.get_by_role("button", name="Send me a code")).to_be_hidden()
