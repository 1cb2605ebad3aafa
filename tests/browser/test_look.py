"""The look, in a browser: every page on narrow and wide screens, in light and dark, for keyboards and readers."""

import re

import pytest
from playwright.sync_api import Page, expect
from pytest_django import Settings

from accounts.models import User
from tests.browser.conftest import NewPage
from tests.factories import (
    AccountFactory,
    RecipientFactory,
    ReminderFactory,
    RunFactory,
    SendingStopFactory,
    TagFactory,
    UserFactory,
)

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
]

PASSWORD = "a long way to the pace line"
PUBLIC = ("/login/", "/styleguide/")
PRIVATE = (
    "/",
    "/reminders/",
    "/recipients/",
    "/accounts/",
    "/activity/",
    "/activity/attempts/",
    "/follow-ups/",
    "/notifications/",
    "/sending/",
)
SCHEMES = ("light", "dark")


@pytest.fixture(autouse=True)
def debug(settings: Settings) -> None:
    """The style page is there in debug alone."""
    settings.DEBUG = True


@pytest.fixture
def person(transactional_db: None) -> User:
    """A person who has no rows yet."""
    return UserFactory.create(username="nadia")


@pytest.fixture
def busy(person: User) -> User:
    """A person with rows in every list, long words among them."""
    long = "Wohnungseigentümergemeinschaft Donaudampfschifffahrtsgesellschaft"
    account = AccountFactory.create(owner=person, name=long, waking=True)
    SendingStopFactory.create(owner=person, reason=long)
    AccountFactory.create(owner=person, flagged=True)
    tag = TagFactory.create(owner=person, name="Nachbarschaftsversammlungsteilnehmer")
    RecipientFactory.create(owner=person, name=long, opted_out=True, tags=[tag])
    RecipientFactory.create(owner=person, name="", address=f"{'x' * 60}@example.com", mailbox=True)
    reminder = ReminderFactory.create(
        owner=person, name=long, repeating=True, scheduled=True, accounts=[account]
    )
    RunFactory.create(reminder=reminder, sent=3, failed=1, unconfirmed=1, sending=1, pending=9)
    RunFactory.create(
        reminder=reminder, paused=True, sent=3, pending=7, summary="The window closed at 18:00."
    )
    return person


@pytest.fixture(params=["person", "busy"])
def somebody(request: pytest.FixtureRequest) -> User:
    """Each kind of person in turn: for empty pages and for full ones."""
    user: User = request.getfixturevalue(request.param)
    return user


def visit(page: Page, path: str) -> Page:
    page.goto(path)
    page.evaluate("document.fonts.ready.then(() => true)")
    return page


def sideways(page: Page) -> int:
    """Return by how many pixels the page is wider than the screen, once it has loaded."""
    page.wait_for_load_state()
    return int(page.evaluate("document.scrollingElement.scrollWidth - window.innerWidth"))


def axe_findings(page: Page) -> list[str]:
    """List what axe-core calls serious or critical, in words that a person can act on."""
    page.wait_for_load_state()
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
    return [
        f"{rule['id']}: {node['html'][:200]} {node['failureSummary']}"
        for rule in found
        if rule["impact"] in ("serious", "critical")
        for node in rule["nodes"]
    ]


def test_logging_in_leads_to_the_dashboard(page: Page) -> None:
    UserFactory.create(username="nadia", with_password=True)
    page.goto("/")
    page.get_by_label("Username").fill("nadia")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in", exact=True).click()
    expect(page.get_by_role("heading", name="Welcome")).to_be_visible()


def test_a_wrong_password_is_told_and_the_name_is_kept(page: Page) -> None:
    page.goto("/login/")
    page.get_by_label("Username").fill("nadia")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Log in", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("Wrong username or password")
    expect(page.get_by_label("Username")).to_have_value("nadia")


@pytest.mark.parametrize("scheme", SCHEMES)
def test_nothing_scrolls_sideways_on_a_phone(new_page: NewPage, somebody: User, scheme: str) -> None:
    stranger, page = new_page(width=360, scheme=scheme), new_page(user=somebody, width=360, scheme=scheme)
    too_wide = {path: sideways(visit(stranger, path)) for path in PUBLIC}
    too_wide |= {path: sideways(visit(page, path)) for path in PRIVATE}
    assert not any(too_wide.values()), too_wide


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 360)])
def test_axe_finds_nothing_serious(new_page: NewPage, somebody: User, scheme: str, width: int) -> None:
    stranger = new_page(width=width, scheme=scheme, axe=True)
    page = new_page(user=somebody, width=width, scheme=scheme, axe=True)
    findings = {path: axe_findings(visit(stranger, path)) for path in PUBLIC}
    findings |= {path: axe_findings(visit(page, path)) for path in PRIVATE}
    assert not any(findings.values()), findings


@pytest.mark.parametrize("scheme", SCHEMES)
def test_axe_finds_nothing_serious_in_the_open_menu(new_page: NewPage, person: User, scheme: str) -> None:
    page = visit(new_page(user=person, scheme=scheme, axe=True), "/")
    page.locator("summary").click()
    assert axe_findings(page) == []


@pytest.mark.parametrize("path", ["/login/", "/"])
def test_scripts_and_styles_come_from_here_alone(new_page: NewPage, busy: User, path: str) -> None:
    page = new_page(user=None if path in PUBLIC else busy)
    response = page.goto(path)
    assert response is not None
    policy = response.headers["content-security-policy"]
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert not re.search(r"<script(?![^>]*\bsrc=)|\sstyle=|\son\w+=", response.text())


def test_the_system_decides_between_light_and_dark(new_page: NewPage) -> None:
    papers = []
    for scheme in SCHEMES:
        page = visit(new_page(scheme=scheme), "/login/")
        papers.append(page.evaluate("getComputedStyle(document.documentElement).backgroundColor"))
    assert papers[0] != papers[1]


def test_a_chosen_scheme_stays_chosen(page: Page) -> None:
    page.goto("/login/")
    page.get_by_role("button", name="Dark").click()
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    expect(page.get_by_role("button", name="Dark")).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name="Same as the system").click()
    expect(page.locator("html")).not_to_have_attribute("data-theme", re.compile("."))


def test_the_slash_key_goes_to_the_search(new_page: NewPage, busy: User) -> None:
    page = visit(new_page(user=busy), "/recipients/")
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox")).to_be_focused()
    page.keyboard.type("a/b")
    expect(page.get_by_role("searchbox")).to_have_value("a/b")


def test_the_first_key_offers_to_skip_the_navigation(new_page: NewPage, person: User) -> None:
    page = visit(new_page(user=person), "/")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()


def test_escape_closes_the_menu_and_gives_the_focus_back(new_page: NewPage, person: User) -> None:
    page = visit(new_page(user=person), "/")
    menu = page.locator("summary", has_text="nadia")
    menu.click()
    expect(page.get_by_role("button", name="Log out")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Log out")).to_be_hidden()
    expect(menu).to_be_focused()


def test_without_javascript_a_phone_can_go_everywhere_and_log_out(new_page: NewPage, person: User) -> None:
    page = new_page(user=person, width=360, javascript=False)
    page.goto("/")
    for name in ("Reminders", "Recipients", "Accounts", "Activity"):
        page.get_by_role("navigation", name="Sections").get_by_role("link", name=name).click()
        expect(page.get_by_role("heading", level=1, name=name)).to_be_visible()
    page.locator("summary").click()
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_role("heading", name="Welcome back")).to_be_visible()
