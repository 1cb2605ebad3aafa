"""The recipients of a reminder, counted before there is a run."""

from collections import Counter

import pytest
from redis import Redis

from accounts.models import User
from accounts.models.account import Channel
from delivery import audience
from delivery.audience import Audience
from delivery.parts import MissingVariableError, render
from delivery.senders.deal import in_turn
from reminders.fire import fire
from tests.factories import AccountFactory, RecipientFactory, ReminderFactory, TagFactory

pytestmark = pytest.mark.django_db


def test_what_is_counted_is_what_a_run_makes(owner: User, redis: Redis) -> None:
    mine, other = AccountFactory.create_batch(2, owner=owner)
    tag = TagFactory.create(owner=owner)
    chosen = [
        RecipientFactory.create(owner=owner, tags=[tag], group=True),
        RecipientFactory.create(owner=owner, account=mine),
        RecipientFactory.create(owner=owner, account=other),
        RecipientFactory.create(owner=owner, opted_out=True),
        RecipientFactory.create(owner=owner, blocked=True),
        RecipientFactory.create(owner=owner, archived=True),
        RecipientFactory.create(owner=owner, mailbox=True),
    ]
    RecipientFactory.create(owner=owner, tags=[tag])
    RecipientFactory.create(owner=owner)
    reminder = ReminderFactory.create(
        owner=owner, accounts=[mine], recipients=chosen, tags=[tag], around_the_clock=True
    )
    found = audience.count(reminder.pk, [mine.pk])
    assert found.kinds == {"group": 1, "person": 2}
    assert found.refused == {
        "opted out": 1,
        "blocked": 1,
        "no longer reachable": 1,
        "on another channel": 1,
        "reached only by another account": 1,
    }
    run = fire(reminder)
    assert (run.pending, run.skipped) == (found.reached, found.excluded)
    assert sorted(run.targets.exclude(error="").values_list("error", flat=True)) == sorted(found.refused)


def test_the_first_accounts_channel_is_the_channel(owner: User) -> None:
    account = AccountFactory.create(owner=owner, by_email=True)
    reminder = ReminderFactory.create(
        owner=owner,
        channel=Channel.EMAIL,
        accounts=[account],
        recipients=RecipientFactory.create_batch(2, owner=owner),
    )
    assert audience.count(reminder.pk, [account.pk]).refused == {"on another channel": 2}


@pytest.mark.parametrize(
    ("kinds", "words"),
    [
        ({}, "0 recipients"),
        ({"group": 1000}, "1,000 groups"),
        ({"group": 1}, "1 group"),
        ({"person": 2}, "2 people"),
        ({"group": 2, "person": 1}, "3 recipients"),
    ],
)
def test_an_audience_in_words(kinds: dict[str, int], words: str) -> None:
    assert Audience(kinds=kinds, refused={}).words == words


@pytest.mark.parametrize(
    ("kept", "new", "words"),
    [
        ({}, 5, ""),
        ({1: 1}, 0, "1 stays with Office"),
        ({1: 3, 2: 1_200}, 1, "1,200 stay with Shop, 3 with Office; 1 is new"),
        ({1: 3}, 60, "3 stay with Office; 60 are new"),
    ],
)
def test_who_stays_with_whom_in_words(kept: dict[int, int], new: int, words: str) -> None:
    people = sum(kept.values()) + new
    found = Audience(kinds={"person": people}, refused={}, kept=kept, names={1: "Office", 2: "Shop"})
    assert found.words_of_kept == words


def test_a_variable_is_missing_where_rendering_would_fail(owner: User) -> None:
    account = AccountFactory.create(owner=owner)
    people = [
        RecipientFactory.create(owner=owner, name=name, fields=fields)
        for name, fields in (
            ("Anna", {"city": "Ipoh"}),
            ("Ben", {"city": ""}),
            ("Cleo", {"city": None}),
            ("", {}),
            ("Dan", {"name": ""}),
            ("", {"name": "Eve", "city": 0}),
        )
    ]
    RecipientFactory.create(owner=owner, name="", opted_out=True)
    reminder = ReminderFactory.create(owner=owner, accounts=[account], recipients=people)
    found = audience.count(reminder.pk, [account.pk], ["name", "city", "address"])

    def fails(variable: str) -> int:
        failed = 0
        for person in people:
            try:
                values = {"name": person.name, "address": person.address, **person.fields}
                render(f"{{{{ {variable} }}}}", values)
            except MissingVariableError:
                failed += 1
        return failed

    assert found.lacking == {"city": fails("city"), "name": fails("name")} == {"city": 4, "name": 2}
    assert (found.short, found.complete) == (4, 2)
    assert audience.count(reminder.pk, [account.pk]).lacking == {}


@pytest.mark.parametrize("free", [0, 1, 4, 5])
def test_the_shares_of_the_accounts_are_those_of_a_run(owner: User, redis: Redis, free: int) -> None:
    accounts = AccountFactory.create_batch(3, owner=owner)
    people = [
        *RecipientFactory.create_batch(2, owner=owner, account=accounts[1]),
        *RecipientFactory.create_batch(free, owner=owner),
        RecipientFactory.create(owner=owner, opted_out=True),
    ]
    reminder = ReminderFactory.create(
        owner=owner, accounts=accounts, recipients=people, around_the_clock=True
    )
    ids = [account.pk for account in accounts]
    run = fire(reminder)
    dealt = Counter(run.targets.filter(error="").values_list("account", flat=True))
    assert audience.count(reminder.pk, ids).shares(in_turn(ids)) == dealt
