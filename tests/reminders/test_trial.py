"""The test to oneself, from the Review step."""

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from accounts import own_addresses
from accounts.models import OwnAddress, TestMessage, User
from delivery.trial import store
from delivery.trial.store import TrialState
from reminders.models import Reminder
from reminders.trial import with_samples
from tests.factories import AccountFactory, RecipientFactory, ReminderFactory

pytestmark = pytest.mark.usefixtures("redis")


@pytest.fixture
def reminder(owner: User) -> Reminder:
    accounts = AccountFactory.create_batch(2, owner=owner, own_address="")
    return ReminderFactory.create(
        owner=owner, accounts=accounts, recipients=[RecipientFactory.create(owner=owner, name="Anna")]
    )


@pytest.fixture(autouse=True)
def own(reminder: Reminder, owner: User) -> None:
    """The owner confirmed one address for both accounts."""
    for account in reminder.accounts.all():
        for address in ("+60123456789", "+60123456780"):
            OwnAddress.objects.create(
                account=account, person=owner, address=address, confirmed_at=timezone.now()
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
    trial_id = response["Location"].partition("test=")[2].partition("&")[0]
    trial = store.find(trial_id)
    assert trial is not None
    assert (trial.account_id, trial.address) == (second.pk, "+60123456789")
    assert trial.values["name"] == "Anna"
    page = logged_in.get(response["Location"]).content.decode()
    assert "Waiting for the account&#x27;s turn." in page
    asked_again = reverse("reminders:test_result", args=[reminder.pk, trial_id])
    assert f'hx-get="{asked_again}"' in page
    store.settle(trial, TrialState.SENT, "Sent to +60123456789.")
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
    trial = store.find(first.partition("test=")[2].partition("&")[0])
    assert trial is not None
    store.settle(trial, TrialState.FAILED, "Not sent.")
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
    ],
)
def test_what_cannot_be_tried_is_told(logged_in: Client, reminder: Reminder, change: str, why: str) -> None:
    if change != "no accounts":
        reminder.parts.all().delete()
    else:
        reminder.reminder_accounts.all().delete()
    page = logged_in.post(url(reminder), {"do": "test", "to": "+60123456789"}).content.decode()
    assert why in page


def test_a_variable_without_a_value_is_tried_with_a_sample(reminder: Reminder) -> None:
    given = {"name": "Choir", "city": ""}
    texts = ["{{ name }} in {{ city }}", "{{ address }} {{ due }}"]
    assert with_samples(given, texts, "whatsapp") == {
        "name": "Choir",
        "city": "[city]",
        "address": "+60 12 345 6789",
        "due": "[due]",
    }


def test_a_test_is_shown_with_its_own_reminder_alone(
    logged_in: Client, client: Client, reminder: Reminder, owner: User, stranger: User
) -> None:
    response = logged_in.post(url(reminder), {"do": "test", "to": "+60123456789"})
    trial_id = response["Location"].partition("test=")[2].partition("&")[0]
    other = ReminderFactory.create(owner=owner)
    page = logged_in.get(reverse("reminders:test_result", args=[other.pk, trial_id])).content.decode()
    assert "no longer stored" in page
    client.force_login(stranger)
    assert client.get(reverse("reminders:test_result", args=[reminder.pk, trial_id])).status_code == 404


NEW = "+60 12-999 9999"


def test_an_address_that_is_not_confirmed_asks_for_a_code_and_keeps_what_was_typed(
    logged_in: Client, reminder: Reminder
) -> None:
    second = reminder.accounts.order_by("reminder_accounts__position")[1]
    typed = {"do": "test", "from": second.pk, "to": NEW, "as": "sample"}
    page = " ".join(logged_in.post(url(reminder), typed).content.decode().split())
    assert "+60129999999 is not confirmed as yours yet" in page
    assert "Send me a code" in page
    assert f'value="{NEW}"' in page
    assert f'<option value="{second.pk}" selected>' in page
    assert '<option value="sample" selected>' in page
    assert not TestMessage.objects.exists()


def test_a_code_is_asked_for_typed_and_opens_the_address(
    logged_in: Client, reminder: Reminder, owner: User
) -> None:
    asked = logged_in.post(url(reminder), {"do": "code", "to": NEW, "as": "sample"})["Location"]
    page = logged_in.get(asked).content.decode()
    assert '<option value="sample" selected>' in page
    assert 'name="code"' in page
    assert 'value="+60129999999"' in page
    code = own_addresses.issue(TestMessage.objects.get())
    wrong = f"{(int(code) + 1) % 10**6:06}"
    page = logged_in.post(url(reminder), {"do": "test", "to": NEW, "code": wrong}).content.decode()
    assert "The code is wrong. Tries left: 4." in page
    assert 'name="code"' in page
    response = logged_in.post(url(reminder), {"do": "test", "to": NEW, "code": code})
    assert "?test=" in response["Location"]
    assert TestMessage.objects.filter(kind="test", address="+60129999999").count() == 1
    assert 'name="code"' not in logged_in.get(response["Location"]).content.decode()


def test_a_colleague_confirms_for_themselves(client: Client, reminder: Reminder, mate: User) -> None:
    client.force_login(mate)
    page = client.post(url(reminder), {"do": "test", "to": "+60123456789"}).content.decode()
    assert "not confirmed as yours yet" in page


@pytest.mark.parametrize("do", ["test", "code"])
def test_who_opted_out_gets_neither_test_nor_code_in_any_spelling(
    logged_in: Client, reminder: Reminder, owner: User, do: str
) -> None:
    RecipientFactory.create(owner=owner, address="+60123456789", opted_out=True)
    page = logged_in.post(url(reminder), {"do": do, "to": "60123456789@c.us"}).content.decode()
    assert "opted out, so nothing is sent there" in page
    assert 'value="60123456789@c.us"' in page
    assert not TestMessage.objects.exists()


@pytest.mark.parametrize("do", ["test", "code"])
def test_a_reader_and_a_stranger_send_nothing(
    client: Client, reminder: Reminder, reader: User, stranger: User, do: str
) -> None:
    for person, status in ((reader, 403), (stranger, 404)):
        client.force_login(person)
        assert client.post(url(reminder), {"do": do, "to": "+60123456789"}).status_code == status
    assert not TestMessage.objects.exists()


def test_the_daily_cap_is_told_beside_what_was_typed(
    logged_in: Client, reminder: Reminder, settings: Settings
) -> None:
    settings.TEST_SENDS_PER_DAY = 1
    logged_in.post(url(reminder), {"do": "test", "to": "+60123456789"})
    page = logged_in.post(url(reminder), {"do": "test", "to": "+60 12-345 6780"}).content.decode()
    assert "Limit reached: 1 tests per day" in page
    assert 'value="+60 12-345 6780"' in page


@pytest.mark.parametrize(("chosen", "name"), [("sample", "Garden club"), ("", "Anna"), ("999999", "Anna")])
def test_sample_or_chosen_values_are_filled_in(
    logged_in: Client, reminder: Reminder, chosen: str, name: str
) -> None:
    response = logged_in.post(url(reminder), {"do": "test", "to": "+60123456789", "as": chosen})
    trial = store.find(response["Location"].partition("test=")[2].partition("&")[0])
    assert trial is not None
    assert trial.values["name"] == name


def test_a_stopped_account_is_told_and_nothing_typed_is_lost(logged_in: Client, reminder: Reminder) -> None:
    reminder.accounts.update(status="offline")
    page = logged_in.post(url(reminder), {"do": "test", "to": "+60 12-345 6789"}).content.decode()
    assert "is offline. Start it first." in page
    assert 'value="+60 12-345 6789"' in page
