"""The admin in a browser: every list, form and question, for readers, keyboards, phones and the dark."""

from collections.abc import Iterator

import pytest
from django.apps import apps
from django.contrib import admin
from django.db.models import Model
from django.urls import reverse
from playwright.sync_api import Page, expect

from accounts.models import User
from tests.browser.conftest import NewPage
from tests.browser.test_look import axe_findings, sideways, visit
from tests.factories import (
    FACTORY_OF,
    AccountFactory,
    RecipientFactory,
    ReminderFactory,
    RunFactory,
    RunTargetFactory,
    TagFactory,
    UserFactory,
)

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
]

# In a page's own words: an action of a list whose first row is chosen, and what is asked then.
QUESTIONS = (
    ("delivery_run", "cancel_runs", "Cancel run: "),
    ("reminders_reminder", "fire_now", "Send now?"),
    ("accounts_account", "log_out", "Log out of the service?"),
    ("accounts_account", "archive", "Archive?"),
    ("accounts_recipient", "opt-out", "Opt out?"),
    ("accounts_recipient", "block", "Block?"),
    ("accounts_tag", "delete_selected", "Delete multiple objects"),
)


@pytest.fixture
def boss(transactional_db: None) -> User:
    """Sees every page that there is."""
    return UserFactory.create(username="boss", superuser=True)


@pytest.fixture
def rows(boss: User) -> dict[type[Model], Model]:
    """One of each kind."""
    made = {model: factory.create() for model, factory in FACTORY_OF.items() if model is not User}
    return made | {User: boss}


def addresses(rows: dict[type[Model], Model]) -> Iterator[str]:
    yield reverse("admin:index")
    yield reverse("admin:password_change")
    for model in admin.site._registry:
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
        yield reverse(f"{name}_changelist")
        if model in rows:
            yield reverse(f"{name}_change", args=[rows[model].pk])


def more_addresses(rows: dict[type[Model], Model]) -> Iterator[str]:
    """Forms for something new, deleting, a history, and a search that finds nothing."""
    for label in ("accounts.Account", "accounts.Recipient", "accounts.User", "reminders.Reminder"):
        name = label.lower().replace(".", "_")
        yield reverse(f"admin:{name}_add")
        yield f"{reverse(f'admin:{name}_changelist')}?q=zzz"
    for label in ("accounts.Tag", "accounts.Limit", "accounts.Recipient"):
        name, row = label.lower().replace(".", "_"), rows[apps.get_model(label)]
        yield reverse(f"admin:{name}_delete", args=[row.pk])
        yield reverse(f"admin:{name}_history", args=[row.pk])


def troubles(page: Page, paths: Iterator[str]) -> dict[str, tuple[int, list[str]]]:
    """Return by address whatever is wider than the screen, or serious to axe-core."""
    found = {path: (sideways(visit(page, path)), axe_findings(page)) for path in paths}
    return {path: trouble for path, trouble in found.items() if trouble != (0, [])}


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 360)])
def test_lists_and_forms_fit_and_axe_finds_nothing_serious(
    new_page: NewPage, boss: User, rows: dict[type[Model], Model], scheme: str, width: int
) -> None:
    page = new_page(user=boss, width=width, scheme=scheme, axe=True)
    assert troubles(page, addresses(rows)) == {}


@pytest.mark.parametrize(("scheme", "width"), [("light", 360), ("dark", 1280)])
def test_what_else_is_asked_fits_and_axe_finds_nothing_serious(
    new_page: NewPage, boss: User, rows: dict[type[Model], Model], scheme: str, width: int
) -> None:
    page = new_page(user=boss, width=width, scheme=scheme, axe=True)
    assert troubles(page, more_addresses(rows)) == {}


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 360)])
def test_questions_fit_and_axe_finds_nothing_serious(
    new_page: NewPage, boss: User, scheme: str, width: int
) -> None:
    RunFactory.create(sent=1, targets=3)
    ReminderFactory.create(off=True, recipients=1)
    RecipientFactory.create(tags=[TagFactory.create()])
    page = new_page(user=boss, width=width, scheme=scheme, axe=True)
    for name, action, title in QUESTIONS:
        visit(page, reverse(f"admin:{name}_changelist"))
        page.locator("#result_list tbody input.action-select").first.check()
        page.get_by_label("Action:").select_option(action)
        page.get_by_role("button", name="Go", exact=True).click()
        expect(page.get_by_role("heading", name=title, level=1)).to_be_visible()
        assert (sideways(page), axe_findings(page)) == (0, []), action


def test_a_form_with_mistakes_is_read_out(new_page: NewPage, boss: User) -> None:
    page = visit(new_page(user=boss, axe=True), reverse("admin:accounts_account_add"))
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Please correct the errors below.")).to_be_visible()
    assert axe_findings(page) == []


def test_the_buttons_of_a_row_do_what_its_list_does(new_page: NewPage, boss: User) -> None:
    account = AccountFactory.create(name="Office phone")
    page = visit(new_page(user=boss), reverse("admin:accounts_account_change", args=[account.pk]))
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_text("Paused: 1.")).to_be_visible()
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_text("Resumed: 1.")).to_be_visible()
    expect(page.get_by_role("heading", name="Office phone")).to_be_visible()


def test_somebody_is_opted_out_in_the_admin_with_a_reason(new_page: NewPage, boss: User) -> None:
    ann = RecipientFactory.create(name="Ann Lee")
    page = visit(new_page(user=boss), reverse("admin:accounts_recipient_change", args=[ann.pk]))
    page.get_by_role("button", name="Opt out").click()
    page.get_by_label("Reason").fill("Asked on the phone.")
    page.get_by_role("button", name="Opt out").click()
    expect(page.get_by_text("Opted out: 1.")).to_be_visible()
    expect(page.get_by_role("button", name="Opt in again")).to_be_visible()


def test_a_reminder_is_switched_off_on_its_page_and_fires_after_a_question(
    new_page: NewPage, boss: User
) -> None:
    reminder = ReminderFactory.create(scheduled=True, recipients=1)
    page = visit(new_page(user=boss), reverse("admin:reminders_reminder_change", args=[reminder.pk]))
    page.get_by_role("button", name="Send now").click()
    expect(page.get_by_text("to 1 person")).to_be_visible()
    page.get_by_role("link", name="No, take me back").click()
    page.get_by_role("button", name="Switch off").click()
    expect(page.get_by_text("Switched off: 1.")).to_be_visible()


def test_a_doubt_is_settled_on_the_targets_page(new_page: NewPage, boss: User) -> None:
    target = RunTargetFactory.create(run=RunFactory.create(sent=1, unconfirmed=1), unconfirmed=True)
    page = visit(new_page(user=boss), reverse("admin:delivery_runtarget_change", args=[target.pk]))
    page.get_by_role("button", name="Mark sent").click()
    expect(page.get_by_text("was marked as sent.")).to_be_visible()


def test_the_slash_key_goes_to_the_search_here_too(new_page: NewPage, boss: User) -> None:
    page = visit(new_page(user=boss), reverse("admin:accounts_recipient_changelist"))
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox", name="Search")).to_be_focused()


def test_there_is_one_page_to_log_in_and_operators_are_told_why_they_stay_out(
    new_page: NewPage, page: Page
) -> None:
    UserFactory.create(username="stella", staff=True, with_password=True)
    page.goto("/admin/")
    expect(page.get_by_role("heading", name="Welcome back")).to_be_visible()
    page.get_by_label("Username").fill("stella")
    page.get_by_label("Password").fill("a long way to the pace line")
    page.get_by_role("button", name="Log in", exact=True).click()
    expect(page.get_by_role("heading", name="Site administration")).to_be_visible()
    operator = new_page(user=UserFactory.create(), troubled=True)
    operator.goto("/admin/")
    expect(operator.get_by_text("The administration is for staff.")).to_be_visible()
