"""The pages of approvals: what is shown to whom, and the decision."""

import json

import pytest
from django.contrib.messages import get_messages
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts.models import Account, Approval, User
from activity.models import Notification
from activity.pages import push_actions
from delivery.models import Run
from notices import spread
from reminders import scheduling
from reminders.by_hand.send import send
from reminders.models import Part, Reminder
from tests.factories import (
    AccountFactory,
    ApprovalFactory,
    ApprovalNumberFactory,
    FollowUpStepFactory,
    QueueFactory,
    ReminderFactory,
    RunFactory,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis")]


@pytest.fixture
def asked(owner: User, sender: User) -> Approval:
    """The owner asked to send a reminder to three people now."""
    ApprovalNumberFactory.create(owner=owner, above=2)
    reminder = ReminderFactory.create(
        owner=owner,
        name="Fair",
        recipients=3,
        scheduled=True,
        by_hand=True,
        around_the_clock=True,
        fire_at=None,
    )
    FollowUpStepFactory.create(reminder=reminder, text="Did you see it?")
    found = send(reminder, by=owner, said={})
    assert isinstance(found, Approval)
    return found


def browser(person: User) -> Client:
    found = Client()
    found.force_login(person)
    return found


def shown(person: User, path: str) -> str:
    return browser(person).get(path).content.decode()


def told(answer: object) -> str:
    return " ".join(str(each) for each in get_messages(answer.wsgi_request))  # type: ignore[attr-defined]


def test_the_page_shows_what_would_leave(asked: Approval, sender: User) -> None:
    page = shown(sender, f"/approvals/{asked.pk}/")
    for words in ("Fair", "3 people", "Did you see it?", "Approve", "Refuse", "more than 2 recipients"):
        assert words in page
    assert str(asked.reminder.parts.get().text.split("{")[0].strip()) in page  # type: ignore[union-attr]


def test_who_asked_sees_who_can_decide(asked: Approval, owner: User) -> None:
    page = shown(owner, f"/approvals/{asked.pk}/")
    assert "You asked for this yourself" in page
    assert "These can decide: sender" in page
    assert "Take the request back" in page
    assert "/approve/" not in page


def test_approving_leads_to_the_run(asked: Approval, sender: User) -> None:
    answer = browser(sender).post(f"/approvals/{asked.pk}/approve/", {"content": asked.content})
    assert answer["Location"] == f"/runs/{Run.objects.get().pk}/"


def test_refusing_shows_the_reason_on_the_reminder(asked: Approval, owner: User, sender: User) -> None:
    browser(sender).post(f"/approvals/{asked.pk}/refuse/", {"content": asked.content, "reason": "Wrong date"})
    assert "Wrong date" in shown(owner, f"/reminders/{asked.reminder_id}/")
    assert "Wrong date" in shown(owner, "/approvals/")


def test_what_was_changed_is_not_offered_and_not_approved(asked: Approval, sender: User) -> None:
    Part.objects.update(text="Other words")
    page = shown(sender, f"/approvals/{asked.pk}/")
    assert "It was changed after it was asked for." in page
    assert "/approve/" not in page
    answer = browser(sender).post(f"/approvals/{asked.pk}/approve/", {"content": asked.content})
    assert "changed since you looked" in told(answer)
    assert not Run.objects.exists()


def test_taking_it_back(asked: Approval, owner: User) -> None:
    assert "Taken back" in told(browser(owner).post(f"/approvals/{asked.pk}/withdraw/"))
    assert "Taken back" in shown(owner, f"/approvals/{asked.pk}/")


def test_the_dashboard_asks_for_the_decision(asked: Approval, owner: User, sender: User) -> None:
    RunFactory.create(reminder=asked.reminder, success=True, sent=1)
    assert "Look and decide" in shown(sender, "/")
    page = shown(owner, "/")
    assert "Waits for a decision of others" in page
    assert f"/approvals/{asked.pk}/" in page


def test_many_requests_take_no_more_queries_than_few(owner: User, sender: User) -> None:
    client, taken = browser(sender), []
    for _ in range(3):
        ApprovalFactory.create_batch(3, owner=owner)
        with CaptureQueriesContext(connection) as asked:
            assert client.get("/approvals/").status_code == 200
        taken.append(len(asked))
    assert taken[1] == taken[2]


def test_every_kind_has_a_page(owner: User, sender: User) -> None:
    queue = QueueFactory.create(owner=owner, text="Dear {{ name }}")
    of_queue = ApprovalFactory.create(owner=owner, kind=Approval.Kind.QUEUE, reminder=queue.carrier)
    account = AccountFactory.create(owner=owner)
    of_account = ApprovalFactory.create(owner=owner, account=account)
    for made in (of_queue, of_account, ApprovalFactory.create(owner=owner, refused=True)):
        assert made.title in shown(sender, f"/approvals/{made.pk}/")
    assert "Dear" in shown(sender, f"/approvals/{of_queue.pk}/")


def test_the_send_page_leads_to_the_request(asked: Approval, owner: User) -> None:
    answer = browser(owner).post(f"/reminders/{asked.reminder_id}/fire", {"number": "3", "confirmed": "1"})
    assert answer["Location"] == f"/approvals/{Approval.objects.waiting().get().pk}/"
    assert "Nothing is sent yet" in told(answer)


def test_the_wizard_says_that_it_waits(owner: User, sender: User) -> None:
    ApprovalNumberFactory.create(owner=owner, above=2)
    reminder = ReminderFactory.create(owner=owner, recipients=3, scheduled=True, around_the_clock=True)
    answer = browser(owner).post(f"/reminders/{reminder.pk}/review", {"do": "schedule"})
    assert "only if somebody approves it before" in told(answer)
    assert "waits for approval" in shown(owner, f"/reminders/{reminder.pk}/")


def test_the_team_page_sets_the_number(owner: User, sender: User) -> None:
    assert "Approval by a second person" in shown(owner, "/team/")
    assert "Saved" in told(browser(owner).post("/team/approval/", {"above": "100"}))
    assert owner.approval_number.above == 100
    answer = browser(owner).post("/team/approval/", {"above": ""})
    assert answer["Location"] == f"/approvals/{Approval.objects.get().pk}/"


def test_nobody_locks_themselves_out_on_the_team_page(owner: User) -> None:
    assert "invite a team member with the role Send first" in shown(owner, "/team/")
    assert "Nobody else could approve" in told(browser(owner).post("/team/approval/", {"above": "100"}))


def test_an_account_is_marked_on_its_page(owner: User, sender: User) -> None:
    account = AccountFactory.create(owner=owner)
    browser(owner).post(f"/accounts/{account.pk}/approval/")
    assert Account.objects.get(pk=account.pk).needs_approval
    assert "Everything that it sends needs approval" in shown(owner, f"/accounts/{account.pk}/")
    answer = browser(owner).post(f"/accounts/{account.pk}/approval/")
    assert answer["Location"] == f"/approvals/{Approval.objects.get().pk}/"


def test_the_notification_has_buttons_and_approving_asks_first(asked: Approval, sender: User) -> None:
    made = Notification.objects.get(owner=sender)
    buttons = push_actions.offered(made)
    assert sorted(buttons) == ["approve", "refuse"]
    question = json.loads(Client().post(buttons["approve"]).content)
    assert question["title"] == "Approve Fair?"
    assert not Run.objects.exists()
    done = json.loads(Client().post(question["moves"]["approve"]).content)
    assert done["title"] == "Approved: Fair"
    assert done["url"] == f"/runs/{Run.objects.get().pk}/"
    again = Client().post(buttons["refuse"])
    assert again.status_code == 409
    assert "has approved this already" in json.loads(again.content)["body"]
    assert push_actions.offered(made) == {}


def test_the_notification_refuses(asked: Approval, sender: User) -> None:
    buttons = push_actions.offered(Notification.objects.get(owner=sender))
    assert Client().post(buttons["refuse"]).status_code == 200
    assert Approval.objects.get().state == Approval.State.REFUSED


def test_a_button_of_somebody_who_was_removed_does_nothing(
    asked: Approval, owner: User, sender: User
) -> None:
    buttons = push_actions.offered(Notification.objects.get(owner=sender))
    owner.mates.all().delete()
    assert Client().post(buttons["refuse"]).status_code == 409
    assert Approval.objects.get().state == Approval.State.WAITING


def test_it_is_passed_on_once_to_each(asked: Approval, owner: User, sender: User) -> None:
    """A member who follows the owner gets the request as their own, and no copy of it."""
    spread.spread()
    assert Notification.objects.filter(owner=sender).count() == 1


def test_staff_decide_in_the_admin(asked: Approval, admin_client: Client) -> None:
    page = admin_client.get(f"/admin/accounts/approval/{asked.pk}/change/").content.decode()
    assert "Approve" in page
    form = {"action": "approve", "_selected_action": asked.pk, "index": "0"}
    question = admin_client.post("/admin/accounts/approval/", form).content.decode()
    assert "Yes, approve" in question
    admin_client.post("/admin/accounts/approval/", form | {"confirmed": "yes"})
    assert Run.objects.exists()


def test_staff_refuse_in_the_admin_with_a_reason(asked: Approval, admin_client: Client) -> None:
    form = {"action": "refuse_it", "_selected_action": asked.pk, "index": "0", "confirmed": "yes"}
    admin_client.post("/admin/accounts/approval/", form)
    assert Approval.objects.get().state == Approval.State.WAITING
    admin_client.post("/admin/accounts/approval/", form | {"reason": "Wrong date"})
    assert Approval.objects.get().reason == "Wrong date"


def test_one_row_changed_in_the_admin_asks_again(
    owner: User, sender: User, admin_client: Client, admin_user: User
) -> None:
    ApprovalNumberFactory.create(owner=owner, above=2)
    reminder = ReminderFactory.create(owner=owner, recipients=3, scheduled=True, around_the_clock=True)
    scheduling.schedule(reminder, by=owner)
    part = reminder.parts.get()
    form = {
        "reminder": reminder.pk,
        "role": "first",
        "position": 0,
        "kind": "text",
        "text": "Other",
        "media": "",
    }
    assert admin_client.post(f"/admin/reminders/part/{part.pk}/change/", form).status_code == 302
    assert Reminder.objects.get(pk=reminder.pk).edited_by == admin_user


@pytest.mark.parametrize("verb", ["approve", "refuse"])
def test_odd_input_changes_nothing(asked: Approval, sender: User, verb: str) -> None:
    for content, reason in (
        (asked.content + "\0", "No"),
        ("x" * 10_000, "No"),
        ("", ""),
        (asked.content, "\0"),
    ):
        if verb == "approve" and content == asked.content:
            continue
        typed = {"content": content, "reason": reason}
        assert browser(sender).post(f"/approvals/{asked.pk}/{verb}/", typed).status_code < 500
    asked.refresh_from_db()
    assert asked.state == Approval.State.WAITING


def test_a_reason_with_a_null_character_is_kept_without_it(asked: Approval, sender: User) -> None:
    typed = {"content": asked.content, "reason": "Wrong\0 date"}
    assert browser(sender).post(f"/approvals/{asked.pk}/refuse/", typed).status_code == 302
    asked.refresh_from_db()
    assert asked.reason == "Wrong date"
