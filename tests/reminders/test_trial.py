"""The test to oneself, from the Review step."""

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import User
from delivery import tickets
from delivery.tickets import TicketState
from reminders.models import Reminder
from tests.factories import AccountFactory, PartFactory, RecipientFactory, ReminderFactory

pytestmark = pytest.mark.usefixtures("redis")


@pytest.fixture
def reminder(owner: User) -> Reminder:
    accounts = AccountFactory.create_batch(2, owner=owner, own_address="")
    return ReminderFactory.create(
        owner=owner, accounts=accounts, recipients=[RecipientFactory.create(owner=owner, name="Anna")]
    )


@pytest.fixture
def logged_in(client: Client, owner: User) -> Client:
    client.force_login(owner)
    return client


def url(reminder: Reminder) -> str:
    return reverse("reminders:review", args=[reminder.pk])


def test_a_test_is_asked_for_and_its_answer_waited_for(logged_in: Client, reminder: Reminder) -> None:
    _first, second = reminder.accounts.order_by("reminder_accounts__position")
    response = logged_in.post(url(reminder), {"do": "test", "from": second.pk, "to": "+60 12-345 6789"})
    ticket_id = response["Location"].partition("test=")[2].partition("#")[0]
    ticket = tickets.find(ticket_id)
    assert ticket is not None
    assert (ticket.account_id, ticket.address) == (second.pk, "+60123456789")
    assert ticket.values["name"] == "Anna"
    second.refresh_from_db()
    assert second.own_address == "+60123456789"
    page = logged_in.get(response["Location"]).content.decode()
    assert "It waits for its account&#x27;s turn." in page
    asked_again = reverse("reminders:test_result", args=[reminder.pk, ticket_id])
    assert f'hx-get="{asked_again}"' in page
    tickets.settle(ticket, TicketState.SENT, "Sent to +60123456789.")
    answer = logged_in.get(asked_again).content.decode()
    assert "Sent to +60123456789." in answer
    assert "hx-get" not in answer


def test_a_double_click_is_one_test(logged_in: Client, reminder: Reminder) -> None:
    asked = {"do": "test", "to": "+60 12-345 6789"}
    first, second = (logged_in.post(url(reminder), asked)["Location"] for _ in range(2))
    assert first == second
    other = logged_in.post(url(reminder), {"do": "test", "to": "+60 12-345 6780"})["Location"]
    assert other != first


def test_what_was_not_sent_can_be_tried_again_at_once(logged_in: Client, reminder: Reminder) -> None:
    asked = {"do": "test", "to": "+60 12-345 6789"}
    first = logged_in.post(url(reminder), asked)["Location"]
    ticket = tickets.find(first.partition("test=")[2].partition("#")[0])
    assert ticket is not None
    tickets.settle(ticket, TicketState.FAILED, "Not sent.")
    assert logged_in.post(url(reminder), asked)["Location"] != first


def test_a_bad_address_is_told_beside_its_field_and_kept(logged_in: Client, reminder: Reminder) -> None:
    page = logged_in.post(url(reminder), {"do": "test", "to": "nowhere"}).content.decode()
    assert 'id="test-error"' in page
    assert 'value="nowhere"' in page


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("no parts", "There is no message to try yet"),
        ("no accounts", "There is no account to send from"),
        ("a missing variable", "No value for {{ city }}"),
    ],
)
def test_what_cannot_be_tried_is_told(logged_in: Client, reminder: Reminder, change: str, why: str) -> None:
    if change != "no accounts":
        reminder.parts.all().delete()
    else:
        reminder.reminder_accounts.all().delete()
    if change == "a missing variable":
        PartFactory.create(reminder=reminder, text="{{ city }}")
    page = logged_in.post(url(reminder), {"do": "test", "to": "+60123456789"}).content.decode()
    assert why in page


def test_a_ticket_is_shown_with_its_own_reminder_alone(
    logged_in: Client, client: Client, reminder: Reminder, owner: User, stranger: User
) -> None:
    response = logged_in.post(url(reminder), {"do": "test", "to": "+60123456789"})
    ticket_id = response["Location"].partition("test=")[2].partition("#")[0]
    other = ReminderFactory.create(owner=owner)
    page = logged_in.get(reverse("reminders:test_result", args=[other.pk, ticket_id])).content.decode()
    assert "too old to be known" in page
    client.force_login(stranger)
    assert client.get(reverse("reminders:test_result", args=[reminder.pk, ticket_id])).status_code == 404
