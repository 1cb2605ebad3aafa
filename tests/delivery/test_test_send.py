"""A test send to oneself: through the account's queue and limits, outside every run."""

import pytest
from django.core.exceptions import PermissionDenied
from redis import Redis

from accounts.models import Account, User
from activity.models import Attempt
from delivery import engine, lifecycle, queues, test_send, tickets
from delivery.models import Run
from delivery.parts import FrozenPart
from delivery.queues import Rest
from delivery.tickets import Ticket, TicketState
from tests.delivery.stage import Stage, counted
from tests.factories import MediaFactory

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis")]
TO = "+60123456789"


def ticket(account: Account, *parts: FrozenPart, values: dict[str, object] | None = None) -> Ticket:
    given = parts or (FrozenPart(kind="text", text="Hello {{ name }}"),)
    return Ticket(
        account_id=account.pk,
        reminder_id=1,
        address=TO,
        action="message",
        subject="",
        parts=[part.as_json() for part in given],
        values={"name": "Anna"} if values is None else values,
    )


def ask(stage: Stage, asked: Ticket) -> Ticket:
    """Ask for it, and do what its task does."""
    test_send.ask(asked, by=stage.owner)
    test_send.send(asked.id)
    return result(asked)


def result(asked: Ticket) -> Ticket:
    found = tickets.find(asked.id)
    assert found is not None
    return found


def test_it_arrives_rendered_and_the_ledger_names_no_target(stage: Stage) -> None:
    account = stage.account()
    found = ask(stage, ticket(account))
    assert (found.state, found.sentence) == (TicketState.SENT, f"Sent to {TO}.")
    (line,) = stage.delivered(account)
    assert (line["to"], line["text"]) == (TO, "Hello Anna")
    row = Attempt.objects.get()
    assert (row.account, row.run, row.target, row.outcome) == (account, None, None, "sent")
    assert not Run.objects.exists()


def test_parts_and_files_come_in_order(stage: Stage) -> None:
    media = MediaFactory.create(owner=stage.owner, stored=True)
    picture = FrozenPart(
        kind="media",
        text="Look",
        sha256=media.sha256,
        file=media.file.name or "",
        filename="fair.png",
        content_type="image/png",
    )
    account = stage.account()
    assert ask(stage, ticket(account, FrozenPart(kind="text", text="One"), picture)).state is TicketState.SENT
    assert [line["text"] for line in stage.delivered(account)] == ["One", "Look"]
    assert list(Attempt.objects.order_by("part").values_list("part", flat=True)) == [0, 1]


def test_it_is_sent_once_however_often_its_task_comes(stage: Stage) -> None:
    account = stage.account()
    asked = ticket(account)
    ask(stage, asked)
    test_send.send(asked.id)
    assert len(stage.delivered(account)) == 1


def test_one_that_was_interrupted_is_not_sent_again(stage: Stage) -> None:
    account = stage.account()
    asked = ticket(account)
    tickets.keep(asked)
    assert tickets.first_time(asked)
    test_send.send(asked.id)
    assert result(asked).state is TicketState.UNKNOWN
    assert not stage.delivered(account)


def test_it_counts_against_the_limits(stage: Stage) -> None:
    account = stage.account(limits={"per_day": 1})
    assert ask(stage, ticket(account)).state is TicketState.SENT
    second = ask(stage, ticket(account))
    assert second.state is TicketState.FAILED
    assert "today's limit is used until" in second.sentence
    assert len(stage.delivered(account)) == 1


def test_more_parts_than_a_limit_could_ever_let_out_are_refused(stage: Stage) -> None:
    account = stage.account(limits={"per_day": 1})
    found = ask(stage, ticket(account, *[FrozenPart(kind="text", text="x")] * 2))
    assert found.state is TicketState.FAILED
    assert "Use fewer parts" in found.sentence


def test_an_account_in_the_middle_of_a_shift_lets_it_in_before_the_next_pump(
    stage: Stage, redis: Redis
) -> None:
    account = stage.account()
    run = stage.fire(account, to=1)
    held = queues.take_lease(account.pk)
    assert held is not None
    asked = ticket(account)
    assert ask(stage, asked).state is TicketState.WAITING
    queues.end_shift(held, Rest.soon())
    engine.pump(account.pk)
    assert counted(run) == {"pending": 1}  # the pump stood back
    test_send.send(asked.id)
    assert result(asked).state is TicketState.SENT
    engine.pump(account.pk)
    assert counted(run) == {"sent": 1}


def test_a_test_that_waited_too_long_is_given_up(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(test_send, "PATIENCE", -1)
    account = stage.account()
    assert "busy for too long" in ask(stage, ticket(account)).sentence


def test_a_stopped_account_says_so_at_once(stage: Stage) -> None:
    found = test_send.ask(ticket(stage.account(offline=True)), by=stage.owner)
    assert (found.state, found.over) == (TicketState.FAILED, True)
    assert "is offline. Start it first." in found.sentence


def test_an_account_that_was_stopped_meanwhile_sends_nothing(stage: Stage) -> None:
    account = stage.account()
    asked = test_send.ask(ticket(account), by=stage.owner)
    lifecycle.pause_account(account, by=stage.owner)
    test_send.send(asked.id)
    found = result(asked)
    assert (found.state, found.sentence) == (TicketState.FAILED, f"{account} is paused. Start it first.")
    assert not stage.received(account)


def test_a_refusal_of_the_service_is_told(stage: Stage) -> None:
    account = stage.account()
    stage.behave(account, error_rate=1.0)
    found = ask(stage, ticket(account))
    assert found.state in (TicketState.FAILED, TicketState.UNKNOWN)
    assert Attempt.objects.exclude(outcome="sent").count() == 1


def test_a_missing_variable_sends_nothing_and_gives_the_permit_back(stage: Stage) -> None:
    account = stage.account(limits={"per_day": 1})
    found = ask(stage, ticket(account, values={}))
    assert "No value for {{ name }}" in found.sentence
    assert not Attempt.objects.exists()
    assert ask(stage, ticket(account)).state is TicketState.SENT


def test_credentials_that_cannot_be_used_are_told(stage: Stage) -> None:
    account = stage.account()
    Account.objects.filter(pk=account.pk).update(transport="sandbox", credentials={})
    assert ask(stage, ticket(account)).state is TicketState.FAILED


def test_a_stranger_sends_nothing(stage: Stage, stranger: User) -> None:
    with pytest.raises(PermissionDenied):
        test_send.ask(ticket(stage.account()), by=stranger)


def test_a_ticket_that_nobody_knows_is_left_alone() -> None:
    test_send.send("no-such-ticket")
    assert tickets.find("no-such-ticket") is None
