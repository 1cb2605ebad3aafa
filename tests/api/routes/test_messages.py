"""One message to one recipient."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts.models import Account, Recipient, User
from delivery.models import Run, RunTarget
from reminders.models import Reminder
from tests.api.program import Program, problem_of
from tests.factories import AccountFactory, AttemptFactory, ContactFactory, LimitFactory, RecipientFactory

ALL_DAY = {"start_hour": 0, "end_hour": 24}


@pytest.fixture
def account(owner: User) -> Account:
    return AccountFactory.create(owner=owner)


@pytest.fixture
def anna(owner: User) -> Recipient:
    return RecipientFactory.create(owner=owner, name="Anna")


def body(account: Account, to_whom: Recipient | None = None, **more: Any) -> dict[str, Any]:
    whom = {"recipient": to_whom.pk} if to_whom else {}
    return {"accounts": [account.pk], "text": "Hi {{ name }}", **ALL_DAY, **whom, **more}


def test_a_message_is_a_run_with_one_target(program: Program, account: Account, anna: Recipient) -> None:
    told = program.post("/messages", body(account, anna), status=201)
    run = Run.objects.get(pk=told["id"])
    assert (run.kind, run.name, run.total, run.resumes_by_itself) == ("message", "Message to Anna", 1, True)
    assert (told["status"], told["account"], told["recipient"]) == ("pending", account.pk, anna.pk)
    assert told["leaves_at"] is not None
    assert told["sentence"]
    assert program.get(f"/runs/{run.pk}")["kind"] == "message"


def test_the_same_request_sends_one_message(program: Program, account: Account, anna: Recipient) -> None:
    answers = [
        program.post("/messages", body(account, anna), status=201, Idempotency_Key="x") for _ in range(3)
    ]
    assert answers[0] == answers[1] == answers[2]
    assert RunTarget.objects.count() == 1


def test_all_messages_of_a_channel_share_one_carrier_that_no_list_shows(
    program: Program, owner: User, account: Account, anna: Recipient
) -> None:
    for _ in range(3):
        program.post("/messages", body(account, anna), status=201)
    carrier = Reminder.objects.get()
    assert (carrier.carries_messages, carrier.runs.count()) == (True, 3)
    assert program.get("/reminders")["items"] == []


def test_a_recipient_is_named_by_address_and_added_once(program: Program, account: Account) -> None:
    to = {"channel": "whatsapp", "address": "+60 12-345 6789", "name": "Ben"}
    first = program.post("/messages", body(account, to=to), status=201)
    second = program.post("/messages", body(account, to=to), status=201)
    assert first["recipient"] == second["recipient"] == Recipient.objects.get(address="+60123456789").pk


def test_outside_its_hours_it_waits_for_them(program: Program, account: Account, anna: Recipient) -> None:
    """A single message is never too late: unlike a reminder it does not fail after that day's window."""
    closed = (timezone.now().hour + 12) % 22
    told = program.post(
        "/messages", body(account, anna, start_hour=closed, end_hour=closed + 1, zone="UTC"), status=201
    )
    assert (told["waiting_for"], told["status"]) == ("window", "pending")
    assert told["leaves_at"] > timezone.now().isoformat()
    assert Run.objects.get().status == "queued"


def test_it_leaves_not_before_its_time(program: Program, account: Account, anna: Recipient) -> None:
    later = timezone.now() + timedelta(hours=2)
    told = program.post("/messages", body(account, anna, not_before=later.isoformat()), status=201)
    assert (told["waiting_for"], told["leaves_at"][:19]) == ("not_before", later.isoformat()[:19])
    assert RunTarget.objects.get().not_before == later


@pytest.mark.parametrize(
    ("state", "said"), [("opted_out", "opted out"), ("blocked", "blocked"), ("archived", "archived")]
)
def test_nothing_is_sent_to_those_who_must_not_get_it(
    program: Program, owner: User, account: Account, state: str, said: str
) -> None:
    recipient = RecipientFactory.create(owner=owner, **{state: True})
    told = problem_of(program.ask("POST", "/messages", body(account, recipient)))
    assert (told["type"], said in told["detail"]) == ("wrong-state", True)
    assert not Run.objects.exists()


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"to": {"channel": "whatsapp", "address": "+60123456789"}}, "recipient"),
        ({"recipient": None}, "recipient"),
        ({"parts": [{"text": "x"}]}, "text"),
        ({"accounts": [999_999_999]}, "accounts"),
        ({"accounts": []}, "accounts"),
        ({"zone": "Mars"}, "zone"),
        ({"end_hour": 0}, "end_hour"),
    ],
)
def test_what_is_wrong_is_named(
    program: Program, account: Account, anna: Recipient, wrong: dict[str, Any], field: str
) -> None:
    told = problem_of(program.ask("POST", "/messages", body(account, anna, **wrong)))
    assert told["errors"][0]["field"] == field


def test_a_variable_without_a_value_and_an_empty_message_are_refused(
    program: Program, account: Account, anna: Recipient
) -> None:
    told = problem_of(program.ask("POST", "/messages", body(account, anna, text="Dear {{ title }}")))
    assert "{{ title }}" in told["detail"]
    assert program.ask("POST", "/messages", body(account, anna, text="")).status_code == 409


def test_of_several_accounts_the_one_that_wrote_last_writes_again(
    program: Program, owner: User, account: Account, anna: Recipient
) -> None:
    known = AccountFactory.create(owner=owner)
    ContactFactory.create(recipient=anna, account=known)
    told = program.post("/messages", body(account, anna, accounts=[account.pk, known.pk]), status=201)
    assert told["account"] == known.pk


def test_a_new_recipient_gets_the_account_with_most_room_that_can_send(
    program: Program, owner: User, account: Account, anna: Recipient
) -> None:
    LimitFactory.create(account=account, per_day=3)
    AttemptFactory.create_batch(2, account=account, owner=owner, target=None, run=None)
    roomy, paused = AccountFactory.create(owner=owner), AccountFactory.create(owner=owner, paused=True)
    LimitFactory.create(account=roomy, per_day=3)
    LimitFactory.create(account=paused, per_day=900)
    told = program.post(
        "/messages", body(account, anna, accounts=[account.pk, paused.pk, roomy.pk]), status=201
    )
    assert told["account"] == roomy.pk


def test_a_group_is_written_to_by_its_own_account(program: Program, owner: User, account: Account) -> None:
    member = AccountFactory.create(owner=owner)
    group = RecipientFactory.create(owner=owner, group=True, account=member)
    told = problem_of(program.ask("POST", "/messages", body(account, group)))
    assert "only by another account" in told["detail"]
    told = program.post("/messages", body(account, group, accounts=[account.pk, member.pk]), status=201)
    assert told["account"] == member.pk


def test_an_e_mail_needs_a_subject(program: Program, owner: User) -> None:
    account = AccountFactory.create(owner=owner, by_email=True)
    reader = RecipientFactory.create(owner=owner, mailbox=True)
    assert "subject" in problem_of(program.ask("POST", "/messages", body(account, reader)))["detail"]


def test_the_reminder_that_carries_messages_stays_archived(
    program: Program, account: Account, anna: Recipient
) -> None:
    program.post("/messages", body(account, anna), status=201)
    carrier = Reminder.objects.get(carries_messages=True)
    answer = program.ask("POST", f"/reminders/{carrier.pk}/unarchive")
    assert (answer.status_code, "single messages" in problem_of(answer)["detail"]) == (409, True)


def test_a_dry_run_says_what_would_be_sent_and_leaves_nothing_behind(
    program: Program, account: Account, anna: Recipient
) -> None:
    told = program.post("/messages", body(account, anna, dry_run=True))
    assert (told["dry_run"], told["texts"], told["account_name"]) == (True, ["Hi Anna"], account.name)
    assert (told["recipient"], told["address"]) == (anna.pk, anna.address)
    assert told["leaves_at"] is not None
    new = {"to": {"channel": "whatsapp", "address": "+60129998877", "name": "Ben"}}
    assert program.post("/messages", body(account, dry_run=True) | new)["recipient"] is None
    assert (Run.objects.count(), Reminder.objects.count(), Recipient.objects.count()) == (0, 0, 1)


def test_a_dry_run_refuses_what_could_not_be_sent(program: Program, account: Account, owner: User) -> None:
    ben = RecipientFactory.create(owner=owner, name="Ben", opted_out=True)
    refused = problem_of(program.ask("POST", "/messages", body(account, ben, dry_run=True)))
    assert "opted out" in refused["detail"]
