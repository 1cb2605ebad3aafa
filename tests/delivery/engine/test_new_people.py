"""New people through the pump: their limit is never crossed, and nobody who is known waits for it (SPEC N)."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone
from redis import Redis

from accounts.models import Account, Recipient
from activity.models import Attempt
from delivery.engine import pump
from delivery.pages import account_facts
from delivery.sessions import first_contacts, own_limits
from delivery.states import RunStatus, TargetStatus
from tests.delivery.stage import Stage, add_up, counted, sentence_of, serve
from tests.factories import AttemptFactory, InboundFactory, RecipientFactory, RunTargetFactory

pytestmark = pytest.mark.django_db(transaction=True)


def people(stage: Stage, count: int) -> list[Recipient]:
    return RecipientFactory.create_batch(count, owner=stage.owner)


def groups(stage: Stage, count: int) -> list[Recipient]:
    return RecipientFactory.create_batch(count, owner=stage.owner, group=True)


def knows(account: Account, person: Recipient, *, ago: timedelta = timedelta(days=1)) -> None:
    at = timezone.now() - ago
    InboundFactory.create(account=account, recipient=person, kind="message", at=at)
    Recipient.objects.filter(pk=person.pk).update(last_inbound_at=at)


def flags(account: Account) -> list[int]:
    return list(Attempt.objects.filter(account=account).order_by("id").values_list("new_person", flat=True))


def limited(stage: Stage, **limits: Any) -> Account:
    return stage.account(limits=limits)


def test_a_day_has_so_many_new_people_and_the_rest_follows_on_the_next_days(
    stage: Stage, redis: Redis
) -> None:
    account = limited(stage, new_per_day=3)
    run = stage.fire(account, to=people(stage, 8))
    for _ in range(4):  # a lost Redis gives no new people
        pump.pump(account.pk)
        redis.flushdb()
    assert counted(run) == {"sent": 3, "pending": 5}
    assert flags(account) == [2, 2, 2]
    today = datetime.now(UTC).date()
    days = Counter(
        (at.date() - today).days
        for at in run.targets.filter(status=TargetStatus.PENDING).values_list("not_before", flat=True)
    )
    assert days == {1: 3, 2: 2}
    add_up(run)


def test_those_who_are_known_and_groups_do_not_wait_for_new_people(stage: Stage) -> None:
    account = limited(stage, new_per_day=2)
    strangers, known = people(stage, 5), people(stage, 3)
    for person in known:
        knows(account, person)
    run = stage.fire(account, to=[*strangers, *known, *groups(stage, 2)])
    pump.pump(account.pk)
    assert counted(run) == {"sent": 7, "pending": 3}
    sent = run.targets.filter(status=TargetStatus.SENT)
    assert set(known) <= {target.recipient for target in sent.select_related("recipient")}
    first = [line["to"] for line in stage.delivered(account)][:5]
    assert not {person.address for person in strangers} & set(first), "known people and groups go first"


def test_a_run_of_new_people_does_not_hold_up_the_next_run(stage: Stage) -> None:
    account = limited(stage, new_per_day=1)
    first = stage.fire(account, to=people(stage, 4), priority=5)
    second = serve(stage.fire(account, to=groups(stage, 3)), account)
    assert second.status == RunStatus.SUCCESS
    assert counted(first) == {"sent": 1, "pending": 3}


@pytest.mark.parametrize(
    ("ago", "flag"), [(timedelta(days=27), 0), (timedelta(days=29), 2)], ids=["within", "before"]
)
def test_a_person_is_known_for_28_days_after_they_wrote(stage: Stage, ago: timedelta, flag: int) -> None:
    account = limited(stage, new_per_day=5)
    (person,) = people(stage, 1)
    knows(account, person, ago=ago)
    serve(stage.fire(account, to=[person]), account)
    assert flags(account) == [flag]


def test_a_person_who_wrote_to_another_account_is_new_to_this_one(stage: Stage) -> None:
    account, other = limited(stage, new_per_day=5), stage.account()
    (person,) = people(stage, 1)
    knows(other, person)
    serve(stage.fire(account, to=[person]), account)
    assert flags(account) == [2]


def test_a_person_counts_once_in_a_day_whatever_the_number_of_messages(stage: Stage) -> None:
    account = limited(stage, new_per_day=2)
    both = people(stage, 2)
    serve(stage.fire(account, to=both, parts=3), account)
    assert sorted(flags(account)) == [2, 2, 3, 3, 3, 3]
    again = serve(stage.fire(account, to=both), account)
    assert again.status == RunStatus.SUCCESS
    assert sorted(flags(account)) == [2, 2, 3, 3, 3, 3, 3, 3]


def test_a_person_of_yesterday_counts_in_the_day_and_not_again_in_the_week(stage: Stage) -> None:
    account = limited(stage, new_per_day=2, new_per_week=3)
    persons = people(stage, 3)
    for person in persons[:2]:
        target = RunTargetFactory.create(
            account=account, run__reminder__owner=stage.owner, recipient=person, sent=True
        )
        AttemptFactory.create(target=target, at=timezone.now() - timedelta(days=2), new_person=2)
    run = stage.fire(account, to=persons)
    pump.pump(account.pk)
    assert counted(run) == {"sent": 2, "pending": 1}
    assert flags(account)[2:] == [1, 1]


def test_a_person_counts_in_the_week_until_their_last_message_has_left_it(stage: Stage) -> None:
    account = limited(stage, new_per_week=2)
    again, *others = people(stage, 3)
    for days, level in ((8, 2), (2, 1)):
        target = RunTargetFactory.create(
            account=account, run__reminder__owner=stage.owner, recipient=again, sent=True
        )
        AttemptFactory.create(target=target, at=timezone.now() - timedelta(days=days), new_person=level)
    run = stage.fire(account, to=others)
    pump.pump(account.pk)
    assert counted(run) == {"sent": 1, "pending": 1}


def test_a_week_has_so_many_new_people(stage: Stage, redis: Redis) -> None:
    account = limited(stage, new_per_week=4)
    for days in (1, 3, 6):
        AttemptFactory.create(
            test_send=True, account=account, at=timezone.now() - timedelta(days=days), new_person=2
        )
    run = stage.fire(account, to=people(stage, 3))
    for _ in range(3):
        pump.pump(account.pk)
        redis.flushdb()
    assert counted(run) == {"sent": 1, "pending": 2}


def test_whom_nothing_reached_is_not_counted(stage: Stage) -> None:
    account = limited(stage, new_per_day=1)
    AttemptFactory.create(
        test_send=True, account=account, at=timezone.now(), new_person=2, outcome="unreachable"
    )
    run = serve(stage.fire(account, to=people(stage, 1)), account)
    assert run.status == RunStatus.SUCCESS


def test_without_a_limit_the_ledger_says_who_was_new(stage: Stage) -> None:
    account = stage.account()
    serve(stage.fire(account, to=[*people(stage, 2), *groups(stage, 1)]), account)
    assert sorted(flags(account)) == [0, 2, 2]


def test_a_limit_that_is_set_later_counts_those_before(stage: Stage) -> None:
    account = stage.account()
    serve(stage.fire(account, to=people(stage, 2)), account)
    account.limits.update(new_per_day=3)
    run = stage.fire(account, to=people(stage, 4))
    pump.pump(account.pk)
    assert counted(run) == {"sent": 1, "pending": 3}


def test_todays_use_says_how_many_were_new(stage: Stage, redis: Redis) -> None:
    account = limited(stage, new_per_day=4)
    serve(stage.fire(account, to=[*people(stage, 3), *groups(stage, 2)]), account)
    for _ in range(2):  # by the limiter, then by the ledger
        gauges = account_facts.gauges(account, now=timezone.now())
        (found,) = [each for each in gauges if each.label == "New people today"]
        assert (found.used, found.limit) == (3, 4)
        redis.flushdb()


# What the account says meanwhile.


@pytest.mark.parametrize(
    ("limit", "sentence"),
    [
        ({"new_per_day": 1}, "Limit reached: 1 new people per day."),
        ({"new_per_week": 1}, "Limit reached: 1 new people per week."),
    ],
)
def test_the_account_says_which_limit_of_new_people_it_waits_for(
    stage: Stage, limit: dict[str, int], sentence: str
) -> None:
    account = limited(stage, **limit)
    run = stage.fire(account, to=people(stage, 3))
    for _ in range(10):
        pump.pump(account.pk)
        if counted(run) == {"sent": 1, "pending": 2} and sentence_of(account).startswith(sentence):
            break
    assert sentence_of(account).startswith(sentence)


def test_the_account_says_that_its_service_locks_first_contacts(stage: Stage) -> None:
    account = stage.account()
    first_contacts.lock(account, at=timezone.now(), until=timezone.now() + timedelta(hours=5))
    stage.fire(account, to=people(stage, 2))
    pump.pump(account.pk)
    assert sentence_of(account).startswith("The service allows no messages to new people for now.")


# A service's own quota of new chats.


def test_a_quota_of_the_service_is_never_passed_and_known_chats_go_on(stage: Stage, redis: Redis) -> None:
    account = stage.account()
    stage.behave(account, new_chats=3)
    own_limits.read_one(account.pk)
    run = stage.fire(account, to=[*people(stage, 8), *groups(stage, 2)])
    for _ in range(20):
        pump.pump(account.pk)
        redis.flushdb()
        if counted(run).get("sent", 0) >= 5:
            break
    pump.pump(account.pk)
    assert counted(run) == {"sent": 5, "pending": 5}
    assert [line["status"] for line in stage.received(account)] == [201] * 5, "nothing was refused"
    account.refresh_from_db()
    assert account.first_contacts_until is not None
    assert account.first_contacts_until > timezone.now() + timedelta(days=29)
    assert not account.first_contacts_guessed
    add_up(run)


def test_an_error_475_counts_more_than_what_the_service_says_of_its_quota(stage: Stage) -> None:
    account = stage.account()
    run = stage.fire(account, to=[*people(stage, 4), *groups(stage, 1)])
    stage.behave(account, new_chats=2)  # it was never asked for
    for _ in range(3):
        pump.pump(account.pk)
    assert counted(run) == {"sent": 3, "pending": 2}
    account.refresh_from_db()
    assert account.first_contacts_guessed
    own_limits.read_one(account.pk)
    read = Account.objects.get(pk=account.pk)
    assert not read.first_contacts_guessed, "its end can be read"
    assert read.first_contacts_until is not None
    assert read.first_contacts_until > timezone.now() + timedelta(days=29)
