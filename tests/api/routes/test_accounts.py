"""Accounts over the API: what is told about them, and what changes them."""

from datetime import timedelta

from django.utils import timezone

from accounts.models import Account, Limit, User
from tests.api.program import Program, problem_of
from tests.factories import AccountFactory, LimitFactory, RunAccountFactory, RunFactory


def test_an_account_says_in_one_sentence_whether_it_sends(program: Program, owner: User) -> None:
    account = AccountFactory.create(owner=owner, name="Parents phone")
    told = program.get(f"/accounts/{account.pk}")
    assert (told["name"], told["status"], told["waiting_for"]) == ("Parents phone", "active", "")
    assert told["sentence"] == "Ready. Nothing to send."


def test_a_waiting_account_names_its_reason_and_until_when(program: Program, owner: User) -> None:
    until = timezone.now() + timedelta(minutes=5)
    account = AccountFactory.create(owner=owner, wake_at=until, waiting_for="per_minute", waiting_until=until)
    RunAccountFactory.create(run=RunFactory.create(reminder__owner=owner, pending=3), account=account)
    told = program.get(f"/accounts/{account.pk}")
    assert told["waiting_for"] == "per_minute"
    assert told["sentence"].startswith("Limit reached")
    assert told["waiting_until"].endswith("Z")


def test_pause_and_resume_are_those_of_the_pages(program: Program, owner: User) -> None:
    account = AccountFactory.create(owner=owner)
    paused = program.post(f"/accounts/{account.pk}/pause")
    assert (paused["status"], paused["sentence"]) == ("paused", "Paused by owner.")
    resumed = program.post(f"/accounts/{account.pk}/resume")
    assert resumed["status"] == "active"
    account.refresh_from_db()
    assert account.status_by == owner


def test_limits_are_set_as_a_whole_and_taken_back(program: Program, owner: User) -> None:
    account = AccountFactory.create(owner=owner)
    LimitFactory.create(account=account, per_minute=7)
    path = f"/accounts/{account.pk}/limits/message"
    told = program.put(path, {"per_day": 5, "gap_min": 3, "gap_max": 4})
    (limits,) = told["limits"]
    assert limits["own"] == {"per_day": 5, "gap_min": 3, "gap_max": 4}
    assert limits["holds"]["per_day"] == {"value": 5, "source": "account"}
    assert {"action": "message", "span": "day", "used": 0, "limit": 5} in told["use"]
    program.put(path, {})
    assert not Limit.objects.exists()


def test_limits_that_contradict_each_other_are_refused_with_their_fields(
    program: Program, owner: User
) -> None:
    account = AccountFactory.create(owner=owner)
    answer = program.ask(
        "PUT", f"/accounts/{account.pk}/limits/message", {"gap_min": 5, "gap_max": 4, "batch_size": 3}
    )
    told = problem_of(answer)
    assert {fault["field"] for fault in told["errors"]} == {"gap_max", "batch_pause"}
    assert not Limit.objects.exists()


def test_an_action_that_the_account_does_not_have_is_refused(program: Program, owner: User) -> None:
    account = AccountFactory.create(owner=owner)
    told = problem_of(program.ask("PUT", f"/accounts/{account.pk}/limits/inmail", {}))
    assert told["type"] == "wrong-state"


def test_the_list_filters_and_pages_survive_what_is_added(program: Program, owner: User) -> None:
    accounts = AccountFactory.create_batch(5, owner=owner)
    AccountFactory.create(owner=owner, archived=True)
    first = program.get("/accounts?limit=2")
    Account.objects.filter(pk=accounts[1].pk).update(archived_at=timezone.now())  # the last row of the page
    AccountFactory.create(owner=owner)
    second = program.get(f"/accounts?limit=10&cursor={first['next_cursor']}")
    ids = [row["id"] for row in [*first["items"], *second["items"]]]
    assert ids[:5] == [account.pk for account in accounts]
    assert (len(ids), second["next_cursor"]) == (6, None)
    assert len(program.get("/accounts?archived=true")["items"]) == 2


def test_the_key_tells_what_it_may_do(program: Program, owner: User) -> None:
    told = program.get("/me")
    assert told["person"] == {"id": owner.pk, "username": "owner"}
    assert told["scopes"] == ["manage", "read", "send", "steer"]
    assert told["owners"] == [told["person"]]
