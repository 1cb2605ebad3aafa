"""Approval in a browser: one person asks, another one looks at it and approves."""

import pytest
from playwright.sync_api import expect
from redis import Redis

from accounts.models import Approval, Role, User
from delivery.models import Run
from reminders.by_hand.send import send
from reminders.models import Reminder
from tests.browser.conftest import NewPage
from tests.browser.test_look import axe_findings, sideways, visit
from tests.browser.test_notices import kept
from tests.factories import (
    ApprovalFactory,
    ApprovalNumberFactory,
    FollowUpStepFactory,
    OperatorFactory,
    PartFactory,
    ReminderFactory,
    RunFactory,
    TeamMateFactory,
)

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def nadia(transactional_db: None) -> User:
    return OperatorFactory.create(username="nadia")


@pytest.fixture
def tom(nadia: User) -> User:
    return TeamMateFactory.create(owner=nadia, mate__username="tom", role=Role.SEND).mate


@pytest.fixture
def reminder(nadia: User, tom: User, redis: Redis) -> Reminder:
    ApprovalNumberFactory.create(owner=nadia, above=2)
    made = ReminderFactory.create(
        owner=nadia, name="School fair", recipients=3, scheduled=True, by_hand=True, around_the_clock=True,
        fire_at=None,
    )  # fmt: skip
    made.parts.update(text="Hello {{ name }}! The school fair is on Saturday at 10:00 in the main hall.")
    PartFactory.create(reminder=made, second=True, text="Thank you! See you there.")
    FollowUpStepFactory.create(reminder=made, text="Did you see our message about the fair?")
    RunFactory.create(reminder=made, success=True, sent=3)
    return made


def test_one_person_asks_and_another_approves(
    new_page: NewPage, nadia: User, tom: User, reminder: Reminder
) -> None:
    page = visit(new_page(user=nadia), f"/reminders/{reminder.pk}/")
    page.get_by_role("link", name="Send now").click()
    page.get_by_role("button", name="Send to 3 people").click()
    expect(page.get_by_text("Nothing is sent yet.")).to_be_visible()
    expect(page.get_by_text("These can decide: tom")).to_be_visible()

    other = visit(new_page(user=tom), "/")
    other.get_by_role("link", name="Look and decide").click()
    expect(other.get_by_text("The school fair is on Saturday")).to_be_visible()
    other.get_by_role("button", name="Approve and send to 3 people").click()
    expect(other.get_by_text("Approved: School fair.")).to_be_visible()
    assert Run.objects.filter(reminder=reminder).count() == 2


@pytest.mark.parametrize(
    ("scheme", "width"), [("light", 1280), ("dark", 360), ("dark", 1280), ("light", 360)]
)
def test_it_can_be_read_on_every_screen(
    new_page: NewPage, nadia: User, tom: User, reminder: Reminder, scheme: str, width: int
) -> None:
    asked = send(reminder, by=nadia, said={})
    assert isinstance(asked, Approval)
    ApprovalFactory.create(owner=nadia, title="Winter timetable", refused=True, decided_by=tom)
    page = new_page(user=tom, width=width, scheme=scheme, axe=True)
    paths = ("/", "/approvals/", f"/approvals/{asked.pk}/", f"/reminders/{reminder.pk}/")
    for path in paths:
        visit(page, path)
        kept(page, f"approval-{path.strip('/').replace('/', '-') or 'dashboard'}-{scheme}-{width}")
        assert sideways(page) == 0, path
        assert axe_findings(page) == [], path
    page = new_page(user=nadia, width=width, scheme=scheme, axe=True)
    visit(page, "/team/")
    kept(page, f"approval-team-{scheme}-{width}")
    assert sideways(page) == 0
    assert axe_findings(page) == []
