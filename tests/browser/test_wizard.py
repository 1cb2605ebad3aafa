"""The wizard in a browser: a first reminder delivered by a newcomer, with and without script, on any screen."""

import threading
from collections.abc import Callable
from uuid import uuid4

import pytest
from django.db import connection
from playwright.sync_api import Page, Route, expect
from pytest_django import Settings
from redis import Redis

from accounts.models import Account, User
from delivery.engine import pump
from delivery.models import Run
from reminders.models import Reminder
from sandbox.process import SandboxProcess
from sandbox.witness import deliveries
from tests.browser.conftest import NewPage
from tests.browser.test_look import PASSWORD, axe_findings, sideways, visit
from tests.delivery.conftest import gateway, quick
from tests.factories import (
    AccountFactory,
    LimitFactory,
    PartFactory,
    RecipientFactory,
    ReminderFactory,
    RunAccountFactory,
    RunFactory,
    RunTargetFactory,
    TagFactory,
    UserFactory,
)

__all__ = ["gateway", "quick"]  # fixtures

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def newcomer(transactional_db: None, redis: Redis, gateway: SandboxProcess) -> User:
    """A person with a sandbox account and three groups, and nothing sent yet."""
    user = UserFactory.create(username="nadia", with_password=True)
    name = f"first-{uuid4().hex}"
    credentials = {"base_url": gateway.url, "account": name, "token": "a-token-of-the-newcomer"}
    account = AccountFactory.create(owner=user, name="Practice phone", credentials=credentials)
    LimitFactory.create(account=account, per_minute=60_000)
    for group in ("Choir", "Garden club", "Parents"):
        RecipientFactory.create(owner=user, name=group, account=account, group=True)
    return user


def worker(account: Account) -> threading.Thread:
    def work() -> None:
        try:
            pump.pump(account.pk)
        finally:
            connection.close()

    thread = threading.Thread(target=work)
    thread.start()
    return thread


def received(gateway: SandboxProcess, account: Account) -> list[str]:
    name = account.credentials["account"]
    return sorted(line["text"] for line in deliveries(gateway.log) if line["account"] == name)


def test_what_is_typed_while_the_page_loads_is_saved_and_shown(new_page: NewPage, newcomer: User) -> None:
    page = new_page(user=newcomer)
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/htmx-2.min.js", hold, times=1)
    page.goto(f"/reminders/{ReminderFactory.create(owner=newcomer).pk}/message", wait_until="commit")
    page.get_by_label("Text of part 1").fill("Typed early")
    expect(page.locator("#preview")).not_to_contain_text("Typed early")
    held[0].continue_()
    expect(page.locator("#preview")).to_contain_text("Typed early")
    page.reload()
    expect(page.get_by_label("Text of part 1")).to_have_value("Typed early")


def test_a_newcomer_gets_a_first_reminder_delivered(
    page: Page, newcomer: User, gateway: SandboxProcess, quick: Settings
) -> None:
    account = Account.objects.get(owner=newcomer)
    page.goto("/reminders/")
    page.get_by_label("Username").fill("nadia")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in", exact=True).click()
    page.get_by_role("link", name="Write a reminder").click()

    page.get_by_label("Text of part 1").fill("Hello {{ name }}, see you on Saturday!")
    expect(page.locator("#preview")).to_contain_text("Hello Choir, see you on Saturday!")
    page.reload()  # it was saved while typing
    expect(page.get_by_label("Text of part 1")).to_have_value("Hello {{ name }}, see you on Saturday!")
    page.get_by_role("button", name="Continue").click()

    expect(page.get_by_label("Practice phone")).to_be_checked()
    page.get_by_label("Choir").check()
    expect(page.locator("#audience")).to_contain_text("1 group")
    page.get_by_role("button", name="Choose all 3").click()
    expect(page.locator("#audience")).to_contain_text("3 groups")
    page.get_by_role("button", name="Continue").click()

    page.get_by_text("Manual", exact=True).click()
    page.get_by_label("From").select_option("0")
    page.get_by_label("Until").select_option("24")
    expect(page.locator("#timing")).to_contain_text("Manual: sent only when you press")
    page.get_by_role("button", name="Continue").click()

    expect(page.locator("#forecast")).to_contain_text("Fits in window")
    page.get_by_role("button", name="Send now to 3 groups").click()
    expect(page.get_by_role("heading", name="Run of Hello")).to_be_visible()
    thread = worker(account)
    expect(page.locator(".run-progress")).to_contain_text("3 of 3 sent")
    expect(page.locator(".run-progress")).to_contain_text("Success")
    thread.join()
    assert received(gateway, account) == [
        f"Hello {name}, see you on Saturday!" for name in ("Choir", "Garden club", "Parents")
    ]


def test_without_javascript_the_whole_wizard_can_be_done(
    new_page: NewPage, newcomer: User, quick: Settings
) -> None:
    page = new_page(user=newcomer, javascript=False)
    page.goto("/reminders/new")
    page.get_by_label("Name").fill("Saturday")
    page.get_by_label("Text of part 1").fill("Second")
    page.locator("#first").get_by_role("button", name="Add a text").click()
    page.get_by_label("Text of part 2").fill("First")
    page.locator("#first-1").get_by_role("button", name="Move up").click()
    expect(page.get_by_label("Text of part 1")).to_have_value("First")
    page.get_by_role("button", name="Continue").click()

    page.get_by_role("searchbox").fill("par")
    page.get_by_role("searchbox").press("Enter")
    page.get_by_label("Parents").check()
    page.get_by_role("button", name="Back").click()
    expect(page.get_by_label("Name")).to_have_value("Saturday")
    page.get_by_role("button", name="Continue").click()
    expect(page.locator("#audience")).to_contain_text("1 group")
    page.get_by_role("button", name="Continue").click()

    page.get_by_label("Repeating").check()
    page.get_by_label("How often").select_option("weekdays")
    page.get_by_label("Time zone").fill("Asia/Kuala_Lumpur")
    page.get_by_role("button", name="Check the times").click()
    expect(page.locator("#timing")).to_contain_text("At 09:00 on Monday through Friday")
    expect(page.locator("#timing time")).to_have_count(5)
    page.get_by_role("button", name="Continue").click()

    page.get_by_role("button", name="Schedule for 1 group, first").click()
    expect(page.get_by_role("heading", level=1, name="Saturday")).to_be_visible()
    reminder = Reminder.objects.get()
    assert (reminder.status, reminder.cron) == ("scheduled", "0 9 * * 1-5")
    assert list(reminder.parts.values_list("text", flat=True)) == ["First", "Second"]


def test_accounts_that_are_ticked_quickly_are_all_chosen(new_page: NewPage, newcomer: User) -> None:
    for name in ("Second phone", "Third phone"):
        AccountFactory.create(owner=newcomer, name=name)
    reminder = ReminderFactory.create(owner=newcomer, accounts=0)
    page = new_page(user=newcomer)
    page.goto(f"/reminders/{reminder.pk}/recipients")
    page.evaluate("document.querySelectorAll('[name=account]').forEach((box) => box.click())")
    expect(page.locator("#audience")).to_contain_text("now.")
    page.wait_for_load_state("networkidle")
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_text("Choose a tag, or at least one recipient")).to_be_visible()
    expect(page.locator("[name=account]:checked")).to_have_count(3)
    assert reminder.reminder_accounts.count() == 3


@pytest.fixture
def rich(transactional_db: None, redis: Redis) -> User:
    """A person with a reminder of every kind, and long words in it."""
    user = UserFactory.create(username="nadia")
    long = "Wohnungseigentümergemeinschaft-Donaudampfschifffahrtsgesellschaft"
    account = AccountFactory.create(owner=user, name=long, waking=True)
    tag = TagFactory.create(owner=user, name="Nachbarschaftsversammlungsteilnehmer")
    people = RecipientFactory.create_batch(2, owner=user, name=long, tags=[tag])
    people.append(RecipientFactory.create(owner=user, name=long, tags=[tag], fields={"city": "Ipoh"}))
    RecipientFactory.create(owner=user, opted_out=True, tags=[tag])
    values = {"owner": user, "accounts": [account], "recipients": people, "tags": [tag]}
    ReminderFactory.create(name="", pk=1, **values)
    reminder = ReminderFactory.create(name=long, pk=2, scheduled=True, repeating=True, **values)
    PartFactory.create(reminder=reminder, with_media=True, position=1, media__stored=True)
    PartFactory.create(reminder=reminder, second=True, text=long * 3)
    run = RunFactory.create(reminder=reminder, pk=1, sent=3, failed=1, unconfirmed=1, sending=1, pending=9)
    RunAccountFactory.create(run=run, account=account)
    RunTargetFactory.create(run=run, recipient=people[0], account=account, unconfirmed=True)
    RunFactory.create(reminder=reminder, pk=2, paused=True, sent=3, pending=200, summary=f"Closed. {long}")
    RunFactory.create(reminder=reminder, pk=3, partial=True)
    RunFactory.create(reminder=reminder, pk=4, success=True, sent=3)
    asks = ReminderFactory.create(name="Asks", pk=3, by_hand=True, parts=0, **values)
    PartFactory.create(reminder=asks, text="{{ city }}")
    ReminderFactory.create(name="Off", pk=4, off=True, **values)
    ReminderFactory.create(name="Put away", pk=5, archived=True, **values)
    return user


PAGES = (
    *(f"/reminders/{pk}/" for pk in range(1, 6)),
    *(f"/reminders/{pk}/{step}" for pk in (1, 2) for step in ("message", "recipients", "when", "review")),
    *(f"/reminders/2/recipients?{shown}" for shown in ("show=chosen", "show=excluded", "q=nobody")),
    "/reminders/3/review",
    "/reminders/4/review",
    "/reminders/2/fire",
    "/reminders/3/fire",
    "/reminders/1/discard",
    "/reminders/?status=archived",
    "/reminders/?q=nothing",
    *(f"/runs/{pk}/" for pk in range(1, 5)),
    *(f"/runs/1/?status={status}" for status in ("sending", "pending", "failed", "sent", "skipped")),
    "/runs/1/cancel",
    "/runs/2/cancel",
    "/activity/?status=paused",
    "/activity/?q=nothing&kind=second",
    "/activity/attempts/?outcome=rejected",
)


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 360)])
def test_every_page_fits_and_axe_finds_nothing_serious(
    new_page: NewPage, rich: User, scheme: str, width: int
) -> None:
    page = new_page(user=rich, width=width, scheme=scheme, axe=True)
    findings: dict[str, object] = {}
    for path in PAGES:
        visit(page, path)
        if wide := sideways(page):
            findings[path] = f"{wide} px too wide"
        elif found := axe_findings(page):
            findings[path] = found
    assert not findings, findings
    assert Run.objects.count() == 4


def ask_about_all(page: Page) -> None:
    page.goto("/activity/")
    page.get_by_label("All 4").check()
    page.get_by_role("button", name="Archive").click()


def ask_about_a_long_run(page: Page) -> None:
    page.goto("/activity/?status=paused")
    page.locator("[name=run]").check()
    page.get_by_role("button", name="Cancel run").click()


def mistype_there(page: Page) -> None:
    ask_about_a_long_run(page)
    page.get_by_label("Type").fill("something else")
    page.get_by_role("button", name="Cancel run").click()


def mistype_the_name(page: Page) -> None:
    page.goto("/runs/2/cancel")
    page.get_by_label("Type").fill("something else")
    page.get_by_role("button", name="Cancel run").click()


def leave_undecided(page: Page) -> None:
    page.goto("/reminders/3/review")
    page.locator("#let-go").evaluate("form => form.noValidate = true")
    page.get_by_role("button", name="Save, send later").click()


def choose_no_time(page: Page) -> None:
    page.goto("/reminders/1/when")
    page.get_by_label("Once").check()
    page.get_by_label("Date and time").fill("")
    page.get_by_role("button", name="Continue").click()


def try_out_nowhere(page: Page) -> None:
    page.goto("/reminders/1/review")
    page.get_by_label("To yourself").fill("nobody")
    page.get_by_role("button", name="Send a test").click()


QUESTIONS: dict[Callable[..., None], str] = {
    ask_about_all: "Archive: 2 runs?",
    ask_about_a_long_run: "3 of 203 already received it. The other 200 will not.",
    mistype_there: "The name does not match.",
    mistype_the_name: "The name does not match.",
    leave_undecided: "Tick this box",
    choose_no_time: "Choose when it is sent",
    try_out_nowhere: "nobody",
}


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 360)])
@pytest.mark.parametrize("ask", QUESTIONS, ids=lambda ask: ask.__name__)
def test_every_question_and_error_fits_and_axe_finds_nothing_serious(
    new_page: NewPage, rich: User, scheme: str, width: int, ask: Callable[..., None]
) -> None:
    page = new_page(user=rich, width=width, scheme=scheme, axe=True)
    ask(page)
    expect(page.locator("main")).to_contain_text(QUESTIONS[ask])
    assert (sideways(page), axe_findings(page)) == (0, [])
    assert not Run.objects.filter(archived_at__isnull=False).exists()
