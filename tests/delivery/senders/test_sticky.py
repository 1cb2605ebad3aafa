"""People keep the account that talked with them last (SPEC S7)."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from accounts.models import Account, Contact, Recipient, User
from delivery import audience
from delivery.engine import recording
from delivery.engine.recording import Landing, Ledgered
from delivery.engine.sql import run as run_query
from delivery.models import Run, RunTarget
from delivery.planning import rooms
from delivery.states import TargetStatus
from reminders.fire import fire
from tests.factories import (
    AccountFactory,
    AttemptFactory,
    ContactFactory,
    LimitFactory,
    RecipientFactory,
    ReminderFactory,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis")]


def senders(owner: User, count: int = 2, **values: object) -> list[Account]:
    return AccountFactory.create_batch(count, owner=owner, **values)


def fired(owner: User, accounts: list[Account], people: list[Recipient]) -> Run:
    return fire(
        ReminderFactory.create(owner=owner, accounts=accounts, recipients=people, around_the_clock=True)
    )


def by_recipient(run: Run) -> dict[int, int]:
    return dict(run.targets.filter(error="").values_list("recipient_id", "account_id"))


def test_a_person_keeps_the_account_that_talked_with_them_last(owner: User) -> None:
    accounts, people = senders(owner, 3), RecipientFactory.create_batch(6, owner=owner)
    for person in people[:4]:
        ContactFactory.create(recipient=person, account=accounts[2])
        ContactFactory.create(
            recipient=person, account=accounts[0], talked_at=timezone.now() - timedelta(days=1)
        )
    found = by_recipient(fired(owner, accounts, people))
    assert [found[person.pk] for person in people[:4]] == [accounts[2].pk] * 4
    assert len(found) == 6


@pytest.mark.parametrize("status", ["paused", "flagged", "offline"])
def test_an_account_that_cannot_send_keeps_nobody(owner: User, status: str) -> None:
    first, second = senders(owner)
    people = RecipientFactory.create_batch(3, owner=owner)
    for person in people:
        ContactFactory.create(recipient=person, account=first)
    Account.objects.filter(pk=first.pk).update(status=status)
    assert set(by_recipient(fired(owner, [first, second], people)).values()) == {second.pk}


def test_accounts_of_which_none_can_send_still_keep_their_people(owner: User) -> None:
    accounts, people = senders(owner, status="paused"), RecipientFactory.create_batch(2, owner=owner)
    for person in people:
        ContactFactory.create(recipient=person, account=accounts[1])
    assert set(by_recipient(fired(owner, accounts, people)).values()) == {accounts[1].pk}


def test_new_people_go_where_most_room_is_left_today(owner: User) -> None:
    full, roomy = senders(owner)
    for account, cap in ((full, 10), (roomy, 30)):
        LimitFactory.create(account=account, per_day=cap)
    AttemptFactory.create_batch(6, account=full, at=timezone.now())
    shares = Counter(
        by_recipient(fired(owner, [full, roomy], RecipientFactory.create_batch(28, owner=owner))).values()
    )
    assert shares == {full.pk: 1, roomy.pk: 27}


def test_limits_of_new_people_are_room_for_people_and_not_for_groups(owner: User) -> None:
    shy, bold = senders(owner)
    LimitFactory.create(account=shy, new_per_day=2)
    LimitFactory.create(account=bold, new_per_day=8)
    people = RecipientFactory.create_batch(10, owner=owner)
    groups = RecipientFactory.create_batch(10, owner=owner, group=True)
    run = fired(owner, [shy, bold], people + groups)
    found = by_recipient(run)
    assert Counter(found[person.pk] for person in people) == {shy.pk: 2, bold.pk: 8}
    assert Counter(found[group.pk] for group in groups) == {shy.pk: 5, bold.pk: 5}


def test_an_account_that_may_not_write_to_new_people_gets_none(owner: User) -> None:
    locked, free = senders(owner)
    Account.objects.filter(pk=locked.pk).update(first_contacts_until=timezone.now() + timedelta(hours=5))
    people = RecipientFactory.create_batch(4, owner=owner)
    assert set(by_recipient(fired(owner, [locked, free], people)).values()) == {free.pk}


def test_the_audience_counts_as_the_run_deals(owner: User) -> None:
    accounts = senders(owner, 3)
    for account, cap in zip(accounts, (5, 9, 40), strict=True):
        LimitFactory.create(account=account, per_day=cap)
    people = RecipientFactory.create_batch(30, owner=owner)
    groups = RecipientFactory.create_batch(7, owner=owner, group=True)
    tied = RecipientFactory.create_batch(2, owner=owner, account=accounts[0])
    for person in people[:6]:
        ContactFactory.create(recipient=person, account=accounts[1])
    reminder = ReminderFactory.create(
        owner=owner, accounts=accounts, recipients=people + groups + tied, around_the_clock=True
    )
    ids = [account.pk for account in accounts]
    counted = audience.count(reminder.pk, ids)
    deal = rooms.deal(ids, reminder.action, parts=1, now=timezone.now())
    assert (counted.kept, counted.tied) == ({accounts[1].pk: 6}, {accounts[0].pk: 2})
    assert counted.new == 31
    assert counted.shares(deal) == Counter(by_recipient(fire(reminder)).values())


def record(target: RunTarget, *, outcome: str = "sent", at: datetime, part: int = 0) -> None:
    status = TargetStatus.SENT if outcome == "sent" else TargetStatus.FAILED
    RunTarget.objects.filter(pk=target.pk).update(status="sending", fence=1, claimed_at=at)
    Run.objects.filter(pk=target.run_id).update(pending=0, sending=1, sent=0, failed=0)
    landing = Landing(
        whose=Ledgered(
            run_id=target.run_id, owner_id=target.run.owner_id, account_id=target.account_id, action="message"
        ),
        fence=1,
        target_id=target.pk,
        part=part,
        attempt=1,
        began_at=at,
        took_ms=5,
        outcome=outcome,
        provider_id="",
        error="",
        status=status,
        parts_done=part + 1,
        not_before=None,
    )
    run_query(recording.record([landing], now=datetime.now(UTC)))


def test_what_is_sent_is_remembered_with_its_ledger_row(owner: User) -> None:
    account, person = AccountFactory.create(owner=owner), RecipientFactory.create(owner=owner)
    targets = [fired(owner, [account], [person]).targets.get() for _ in range(3)]
    early, late = timezone.now() - timedelta(hours=2), timezone.now()
    record(targets[0], at=late, outcome="rejected")
    assert not Contact.objects.exists()
    record(targets[1], at=late)
    record(targets[2], at=early)  # a result that comes late
    contact = Contact.objects.get()
    assert (contact.recipient_id, contact.account_id, contact.talked_at) == (person.pk, account.pk, late)


def test_a_shift_of_another_account_with_the_same_number_records_nothing_of_a_target(owner: User) -> None:
    mine, other = senders(owner)
    target = fired(owner, [mine], [RecipientFactory.create(owner=owner)]).targets.get()
    RunTarget.objects.filter(pk=target.pk).update(account=other)
    record(target, at=timezone.now())
    target.refresh_from_db()
    assert target.status == TargetStatus.SENDING
