"""A service's own limits: read, kept, and held where they are stricter than ours."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import Account, OwnLimits, User
from activity.models import Inbound
from delivery.inbound import store
from delivery.inbound.handle import handle_event
from delivery.limits import lookup
from delivery.limits.effective import Source
from delivery.sessions import first_contacts, new_chats, own_limits
from delivery.transports import base
from tests.delivery.stage import Stage
from tests.factories import (
    AccountFactory,
    AttemptFactory,
    InboundFactory,
    OperatorFactory,
    OwnLimitsFactory,
    RecipientFactory,
    RunAccountFactory,
    RunFactory,
    RunTargetFactory,
)


@pytest.fixture
def account(owner: User) -> Account:
    return AccountFactory.create(owner=owner)


def told(account: Account, **limits: Any) -> Account:
    own_limits.keep(account, base.OwnLimits(**limits), asked_at=timezone.now())
    account.refresh_from_db()
    return account


def in_hours(hours: float) -> datetime:
    return timezone.now() + timedelta(hours=hours)


def left(account: Account) -> int | None:
    found = new_chats.quota(account.pk, now=timezone.now())
    return found.left if found else None


def wrote_to(account: Account, *, ago: timedelta, **target: Any) -> None:
    at = timezone.now() - ago
    made = RunTargetFactory.create(
        account=account, run__reminder__owner=account.owner, sent=True, settled_at=at, **target
    )
    AttemptFactory.create(target=made, at=at)


# Locks and their ends.


def test_the_end_that_a_service_says_replaces_a_guess_also_with_an_earlier_one(account: Account) -> None:
    run = RunFactory.create(reminder__owner=account.owner, pending=1)
    RunAccountFactory.create(run=run, account=account)
    target = RunTargetFactory.create(run=run, account=account)
    first_contacts.lock(account, at=timezone.now(), until=None)
    account.refresh_from_db()
    target.refresh_from_db()
    assert account.first_contacts_guessed
    assert target.not_before == account.first_contacts_until
    end = in_hours(3)
    told(account, locked=True, locked_until=end)
    assert (account.first_contacts_until, account.first_contacts_guessed) == (end, False)
    target.refresh_from_db()
    assert target.not_before == end


def test_a_guess_changes_no_lock_that_holds(account: Account) -> None:
    end = in_hours(3)
    told(account, locked=True, locked_until=end)
    first_contacts.lock(account, at=timezone.now(), until=None)
    account.refresh_from_db()
    assert (account.first_contacts_until, account.first_contacts_guessed) == (end, False)


def test_a_status_without_a_lock_lifts_none_that_a_message_met(account: Account) -> None:
    first_contacts.lock(account, at=timezone.now(), until=None)
    account.refresh_from_db()
    until = account.first_contacts_until
    told(account)
    assert account.first_contacts_until == until


def test_a_quota_that_is_used_up_is_a_lock_until_its_cycle_ends(account: Account) -> None:
    end = in_hours(50)
    told(account, new_chats=20, new_chats_used=20, new_chats_until=end)
    assert account.first_contacts_until == end
    assert left(account) == 0


@pytest.mark.usefixtures("transactional_db")
def test_a_service_without_limits_says_so(stage: Stage) -> None:
    account = stage.account()
    own_limits.read_one(account.pk)
    row = OwnLimits.objects.get(account=account)
    assert (row.new_chats, row.trouble) == (None, "")
    assert json.loads(row.said)["total"] == 0


# The quota.


def test_what_is_left_counts_the_chats_that_began_since_it_was_read(account: Account) -> None:
    OwnLimitsFactory.create(
        account=account,
        new_chats=10,
        new_chats_used=4,
        new_chats_until=in_hours(9),
        read_at=timezone.now() - timedelta(hours=1),
    )
    assert left(account) == 6
    wrote_to(account, ago=timedelta(minutes=30))
    assert left(account) == 5
    wrote_to(
        account, ago=timedelta(minutes=30), recipient=RecipientFactory.create(owner=account.owner, group=True)
    )
    wrote_to(account, ago=timedelta(hours=5))
    assert left(account) == 5, "groups, and chats of before it was read"
    known = RecipientFactory.create(owner=account.owner)
    for hours in (30, 0.5):
        wrote_to(account, ago=timedelta(hours=hours), recipient=known)
    assert left(account) == 5, "a chat that was there before"
    now = timezone.now()
    RunTargetFactory.create(
        account=account, run__reminder__owner=account.owner, status="sending", fence=1, claimed_at=now
    )
    assert left(account) == 4, "one under way"


def test_a_new_cycle_has_its_quota_before_it_is_read_again(account: Account) -> None:
    OwnLimitsFactory.create(
        account=account,
        new_chats=10,
        new_chats_used=10,
        new_chats_until=timezone.now() - timedelta(hours=1),
        read_at=timezone.now() - timedelta(hours=2),
    )
    assert left(account) == 10
    wrote_to(account, ago=timedelta(minutes=5))
    assert left(account) == 9


def test_no_quota_limits_nothing(account: Account) -> None:
    assert left(account) is None
    told(account)
    assert left(account) is None


# Meta's limit.


def test_accounts_of_a_portfolio_share_its_limit_in_equal_parts(owner: User) -> None:
    first, second = AccountFactory.create_batch(2, owner=owner, transport="cloud_api")
    stranger = AccountFactory.create(owner=OperatorFactory.create(), transport="cloud_api")
    told(first, people_per_24_hours=251)
    for each in (first, second, stranger):
        each.refresh_from_db()
    shares = [each.service_per_24_hours for each in (first, second, stranger)]
    assert shares == [125, 125, None]
    found = lookup.explained_limits(first, "message")
    assert (found.limits.per_24_hours, found.sources["per_24_hours"]) == (125, Source.SERVICE)
    told(first)
    second.refresh_from_db()
    assert second.service_per_24_hours is None


def test_our_own_limit_stays_where_it_is_stricter(owner: User) -> None:
    account = AccountFactory.create(owner=owner, transport="cloud_api")
    account.limits.create(per_24_hours=30)
    told(account, people_per_24_hours=250)
    found = lookup.explained_limits(account, "message")
    assert (found.limits.per_24_hours, found.sources["per_24_hours"]) == (30, Source.ACCOUNT)


# When it is asked.


@pytest.mark.parametrize(("state", "asks"), [("working", True), (store.OWN_LIMITS, True), ("stopped", False)])
def test_a_report_of_a_change_has_the_service_asked(
    owner: User, state: str, asks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(own_limits, "later", lambda account: asked.append(account.pk))
    account = AccountFactory.create(owner=owner)
    event = InboundFactory.create(account=account, kind=Inbound.Kind.SESSION, state=state, at=timezone.now())
    handle_event(event)
    assert bool(asked) is asks


@pytest.mark.usefixtures("transactional_db")
def test_every_account_is_asked_in_turn_and_trouble_keeps_the_last_answer(stage: Stage) -> None:
    account, away = stage.account(), stage.account()
    Account.objects.filter(pk=away.pk).update(
        credentials={**away.credentials, "base_url": "http://127.0.0.1:1"}
    )
    OwnLimitsFactory.create(account=away, new_chats=7, tried_at=timezone.now() - timedelta(hours=1))
    stage.behave(account, new_chats=30)
    own_limits.read_due()
    assert OwnLimits.objects.get(account=account).new_chats == 30
    kept = OwnLimits.objects.get(account=away)
    assert kept.new_chats == 7
    assert kept.trouble
    before = OwnLimits.objects.get(account=account).tried_at
    own_limits.read_due()
    assert OwnLimits.objects.get(account=account).tried_at == before


# The page.


def test_the_page_shows_what_the_service_said(client: Client, owner: User, account: Account) -> None:
    told(account, new_chats=40, new_chats_used=12, new_chats_until=in_hours(9), said={"totalQuota": 40})
    client.force_login(owner)
    page = client.get(f"/accounts/{account.pk}/").content.decode()
    assert "12 of 40" in page
    assert "totalQuota" in page


@pytest.mark.parametrize(
    "far", [datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC), datetime.max.replace(tzinfo=UTC)]
)
def test_absurd_numbers_and_ends_are_kept_as_far_as_they_can_be(account: Account, far: datetime) -> None:
    """One service that errs must not keep the limits of all other accounts from being read."""
    said = base.OwnLimits(
        new_chats=10**30,
        new_chats_used=10**30,
        new_chats_until=far,
        people_per_24_hours=10**15,
        locked=True,
        locked_until=far,
    )
    own_limits.keep(account, said, asked_at=timezone.now())
    account.refresh_from_db()
    assert account.first_contacts_until is not None
    assert account.first_contacts_until < timezone.now() + timedelta(days=3661)
    assert new_chats.left(account, now=timezone.now()) == 0
    assert account.service_per_24_hours == 2**31 - 1
