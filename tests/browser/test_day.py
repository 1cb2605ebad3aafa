"""The operator's day in a browser: nothing leaves by mistake, and what one needs is where one looks for it."""

from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import expect
from redis import Redis

from accounts.models import User
from delivery.models import Run
from reminders.models import Reminder
from tests.browser.conftest import NewPage, Scheme
from tests.browser.test_look import axe_findings, sideways, visit
from tests.factories import (
    AccountFactory,
    RecipientFactory,
    ReminderFactory,
    RunAccountFactory,
    RunFactory,
    RunTargetFactory,
    TagFactory,
    UserFactory,
)

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

SOON = 15_000


@pytest.fixture
def nadia(transactional_db: None, redis: Redis) -> User:
    return UserFactory.create(username="nadia")


@pytest.fixture
def fair(nadia: User) -> Reminder:
    """A reminder to three groups that is sent by hand."""
    account = AccountFactory.create(owner=nadia, name="Office phone")
    people = [
        RecipientFactory.create(owner=nadia, name=name, group=True) for name in ("Choir", "Garden", "Parents")
    ]
    values = {"scheduled": True, "by_hand": True, "fire_at": None, "around_the_clock": True}
    return ReminderFactory.create(owner=nadia, name="Fair", accounts=[account], recipients=people, **values)


def canceled(fair: Reminder) -> Run:
    """A run that a person canceled after one message was sent, and one is unconfirmed."""
    run = RunFactory.create(
        reminder=fair,
        partial=True,
        sent=1,
        failed=0,
        skipped=1,
        unconfirmed=1,
        canceled_at=timezone.now(),
        canceled_by="nadia",
        summary="Canceled by nadia at 10:29, 1 of 3 sent.",
    )
    account = fair.accounts.get()
    RunAccountFactory.create(run=run, account=account, open=False)
    for recipient, trait in zip(
        fair.recipients.order_by("pk"), ("sent", "unconfirmed", "skipped"), strict=True
    ):
        RunTargetFactory.create(run=run, account=account, recipient=recipient, **{trait: True})
    return run


def test_a_large_run_is_asked_about_and_can_be_undone(
    new_page: NewPage, nadia: User, fair: Reminder, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in ("reminders.by_hand.last_look.ASKS_ABOVE", "delivery.conf.ASKS_ABOVE"):
        monkeypatch.setattr(place, 2)
    page = new_page(user=nadia)
    page.goto(f"/reminders/{fair.pk}/review")
    page.get_by_role("button", name="Save").click()
    page.get_by_role("link", name="Send now").click()
    asked = page.locator("#ask")
    for words in ("3 groups", "Choir, Garden, Parents", "Office phone, by WhatsApp", "Never", "10 seconds"):
        expect(asked).to_contain_text(words)
    page.get_by_role("button", name="Send to 3 groups").click()
    expect(page.get_by_role("region", name="Undo")).to_contain_text("Nothing has left yet.")
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("was taken back. Nothing was sent.")).to_be_visible()
    expect(page.locator(".run-progress")).to_contain_text("Canceled by nadia at")
    assert Run.objects.get().status == "canceled"


def test_sent_again_within_a_day_it_names_them_and_leaves_them_out(
    new_page: NewPage, nadia: User, fair: Reminder
) -> None:
    canceled(fair)
    page = new_page(user=nadia)
    page.goto(f"/reminders/{fair.pk}/fire")
    expect(page.locator("#ask")).to_contain_text("2 of them received it already")
    expect(page.locator("#ask")).to_contain_text("they may have received it: Garden.")
    page.get_by_role("button", name="Send now").click()
    expect(page.locator(".run-progress")).to_contain_text("0 of 1 sent, 2 left out")


def test_a_canceled_run_is_canceled_in_the_list_and_on_its_page(
    new_page: NewPage, nadia: User, fair: Reminder
) -> None:
    run = canceled(fair)
    page = new_page(user=nadia)
    page.goto("/activity/?status=canceled")
    expect(page.locator("#runs")).to_contain_text("Canceled")
    page.goto("/activity/?status=partial")
    expect(page.locator("main")).to_contain_text("No runs found")
    page.goto(f"/runs/{run.pk}/")
    expect(page.locator(".run-progress")).to_contain_text("Canceled by nadia at 10:29, 1 of 3 sent.")


def test_the_remedy_of_a_pause_is_a_button(new_page: NewPage, nadia: User, fair: Reminder) -> None:
    account = fair.accounts.get()
    closed = RunFactory.create(
        reminder=fair, paused=True, pending=2, window_start_hour=0, window_end_hour=1, summary="It closed."
    )
    RunAccountFactory.create(run=closed, account=account)
    page = new_page(user=nadia)
    page.goto(f"/runs/{closed.pk}/")
    page.get_by_role("link", name="Widen the hours").click()
    page.get_by_label("Until").select_option("24")
    page.get_by_role("button", name="Save the hours").click()
    expect(page.get_by_text("Delivery hours of this run: 00:00 to 24:00.")).to_be_visible()
    expect(page.locator(".run-progress")).to_contain_text("Running")
    account.status = "offline"
    account.save()
    Run.objects.update(status="paused", pause_reason="account_offline")
    page.goto("/")
    expect(page.get_by_role("button", name="Reconnect Office phone")).to_be_visible()


def test_a_run_is_searched_and_decided_about_by_cause(new_page: NewPage, nadia: User, fair: Reminder) -> None:
    account = fair.accounts.get()
    run = RunFactory.create(reminder=fair, partial=True, sent=0, failed=3)
    RunAccountFactory.create(run=run, account=account, open=False)
    for recipient, error in zip(
        fair.recipients.order_by("pk"), ("500", "500", "No such number."), strict=True
    ):
        RunTargetFactory.create(run=run, account=account, recipient=recipient, failed=True, error=error)
    page = new_page(user=nadia)
    page.goto(f"/runs/{run.pk}/")
    page.get_by_role("searchbox", name="Search by name or address").fill("gar")
    page.get_by_role("searchbox", name="Search by name or address").press("Enter")
    expect(page.locator("#targets tbody tr")).to_have_count(1)
    expect(page.locator("#targets tbody")).to_contain_text("Garden")
    page.get_by_role("link", name="Clear").click()
    page.get_by_role("button", name="Retry 2 from Office phone: 500").click()
    expect(page.get_by_role("heading", name="Retry all: 2 messages?")).to_be_visible()
    page.get_by_role("button", name="Retry all (2)").click()
    expect(page.get_by_text("2 messages were queued again.")).to_be_visible()
    run.refresh_from_db()
    assert (run.failed, run.pending) == (1, 2)


def test_the_third_step_saves_what_is_chosen(new_page: NewPage, nadia: User) -> None:
    draft = ReminderFactory.create(owner=nadia, recipients=1)
    page = new_page(user=nadia)
    page.goto(f"/reminders/{draft.pk}/when")
    page.get_by_label("Repeating").check()
    page.get_by_label("How often").select_option("weekdays")
    page.get_by_label("Time zone").fill("Asia/Kuala_Lumpur")
    expect(page.locator("#timing")).to_contain_text("At 09:00 on Monday through Friday", timeout=SOON)
    expect(page.locator("#timing")).to_contain_text("Saved.")
    page.reload()
    expect(page.get_by_label("Time zone")).to_have_value("Asia/Kuala_Lumpur")
    expect(page.get_by_label("How often")).to_have_value("weekdays")
    expect(page.locator("#foreseen")).to_contain_text("Fits in window")


def test_recipients_are_filtered_by_tags_that_they_have_and_have_not(new_page: NewPage, nadia: User) -> None:
    parents, away = (
        TagFactory.create(owner=nadia, name="Parents"),
        TagFactory.create(owner=nadia, name="Away"),
    )
    RecipientFactory.create(owner=nadia, name="Ada", tags=[parents])
    RecipientFactory.create(owner=nadia, name="Ben", tags=[parents, away])
    RecipientFactory.create(owner=nadia, name="Choir", tags=[parents], group=True)
    draft = ReminderFactory.create(owner=nadia)
    page = new_page(user=nadia)
    page.goto(f"/reminders/{draft.pk}/recipients")
    page.get_by_label("With the tag", exact=True).select_option(label="Parents")
    page.get_by_label("Without the tag").select_option(value=str(away.pk))
    page.get_by_label("Kind").select_option("person")  # a changed filter applies at once
    expect(page.get_by_role("button", name="Choose all 1 found")).to_be_visible()
    page.get_by_role("button", name="Choose all 1 found").click()
    expect(page.locator("#audience")).to_contain_text("1 person")
    assert [str(each) for each in draft.recipients.all()] == ["Ada"]


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 360)])
def test_every_new_page_fits_and_axe_finds_nothing_serious(
    new_page: NewPage, nadia: User, fair: Reminder, scheme: Scheme, width: int
) -> None:
    run = canceled(fair)
    soon = timezone.now() + timedelta(hours=1)
    for name in ("First", "Second"):
        ReminderFactory.create(
            owner=nadia,
            name=name,
            scheduled=True,
            around_the_clock=True,
            fire_at=soon,
            next_fire_at=soon,
            accounts=[fair.accounts.get()],
            recipients=list(fair.recipients.all()),
        )
    draft = ReminderFactory.create(owner=nadia, accounts=[fair.accounts.get()], recipients=1)
    paused = RunFactory.create(reminder=fair, paused=True, pending=2, summary="It closed at 18:00.")
    RunAccountFactory.create(run=paused, account=fair.accounts.get())
    page = new_page(user=nadia, width=width, scheme=scheme, axe=True)
    findings: dict[str, object] = {}
    for path in (
        "/calendar/",
        "/calendar/?view=day",
        f"/runs/{paused.pk}/hours",
        f"/runs/{paused.pk}/",
        f"/reminders/{fair.pk}/fire",
        f"/runs/{run.pk}/?status=unconfirmed",
        f"/runs/{run.pk}/?q=nobody",
        *(f"/reminders/{draft.pk}/{step}" for step in ("message", "recipients", "when", "review")),
    ):
        visit(page, path)
        if wide := sideways(page):
            findings[path] = f"{wide} px too wide"
        elif found := axe_findings(page):
            findings[path] = found
    assert not findings, findings
