"""Work that meets a full day finds another one, and its run says so."""

from collections import Counter
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import time_machine

from accounts.models import Account, User
from delivery.models import Run, RunTarget
from delivery.planning import diary, replan
from reminders.fire import fire
from tests.delivery.stage import add_up
from tests.factories import AccountFactory, AttemptFactory, LimitFactory, RecipientFactory, ReminderFactory

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis")]

BERLIN = ZoneInfo("Europe/Berlin")
WEDNESDAY = datetime(2026, 3, 11, 10, tzinfo=BERLIN)
THURSDAY_OPENING = datetime(2026, 3, 12, 9, tzinfo=BERLIN)
WED, THU, FRI, MON = (date(2026, 3, day) for day in (11, 12, 13, 16))


@pytest.fixture
def account(owner: User) -> Account:
    account = AccountFactory.create(owner=owner, zone="Europe/Berlin")
    LimitFactory.create(account=account, per_day=20)
    return account


def fired(account: Account, **values: Any) -> Run:
    given = {"accounts": [account], "recipients": 50, "zone": "Europe/Berlin", **values}
    made = ReminderFactory.create(owner=account.owner, business_hours=True, **given)
    with time_machine.travel(WEDNESDAY, tick=False):
        return fire(made)


def days(*runs: Run) -> dict[date, int]:
    times = RunTarget.objects.filter(run__in=runs).values_list("not_before", flat=True)
    return dict(sorted(Counter(at.astimezone(BERLIN).date() for at in times).items()))


def full(account: Account, now: datetime = WEDNESDAY) -> list[replan.Moved]:
    return replan.full_day(account, "message", now=now)


def test_what_is_left_of_a_full_day_is_moved_to_the_days_that_follow(account: Account) -> None:
    run = fired(account)
    assert full(account) == [replan.Moved(run_id=run.pk, targets=50, first=THURSDAY_OPENING)]
    assert days(run) == {THU: 20, FRI: 20, MON: 10}
    opening = run.targets.order_by("not_before").values_list("not_before", flat=True)[0]
    assert opening == THURSDAY_OPENING
    add_up(run)


def test_the_run_says_so(account: Account) -> None:
    run = fired(account)
    full(account)
    run.refresh_from_db()
    assert run.summary == (
        f"{account} can send 20 messages per day: 50 people were moved to later days, "
        "the first to Thu 12 Mar, 09:00 (Europe/Berlin)."
    )


def test_once_is_enough(account: Account) -> None:
    run = fired(account)
    full(account)
    before = days(run)
    assert full(account) == []
    assert days(run) == before


def test_a_run_too_large_for_one_transaction_is_moved_bit_by_bit(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replan, "MOST_AT_ONCE", 15)
    run = fired(account)
    assert [sum(each.targets for each in full(account)) for _ in range(5)] == [15, 15, 15, 5, 0]
    assert days(run) == {THU: 20, FRI: 20, MON: 10}


def test_the_most_important_run_gets_the_first_day(account: Account) -> None:
    minor, major = fired(account, recipients=15), fired(account, recipients=15, priority=1)
    full(account)
    assert (days(major), days(minor)) == ({THU: 15}, {THU: 5, FRI: 10})


def test_what_others_have_planned_for_a_day_stays(account: Account) -> None:
    planned = fired(account, recipients=15)
    RunTarget.objects.filter(run=planned).update(not_before=THURSDAY_OPENING)
    run = fired(account, recipients=10)
    full(account)
    assert (days(planned), days(run)) == ({THU: 15}, {THU: 5, FRI: 5})


def test_a_drip_is_planned_anew_and_stays_apart(account: Account) -> None:
    run = fired(account, drip=True, recipients=30)
    full(account, WEDNESDAY + timedelta(hours=1))
    assert days(run) == {THU: 20, FRI: 10}
    assert len(set(run.targets.values_list("not_before", flat=True))) == 30


def test_other_accounts_and_actions_are_left_alone(owner: User, account: Account) -> None:
    other = AccountFactory.create(owner=owner, zone="Europe/Berlin")
    tied = [RecipientFactory.create_batch(5, owner=owner, account=each) for each in (account, other)]
    shared = fired(account, accounts=[account, other], recipients=[*tied[0], *tied[1]])
    by_mail = fired(account, action="email", recipients=3)
    full(account)
    moved = set(shared.targets.filter(account=account).values_list("not_before", flat=True))
    assert moved == {THURSDAY_OPENING}
    assert set(shared.targets.filter(account=other).values_list("not_before", flat=True)) == {shared.fired_at}
    assert days(by_mail) == {WED: 3}


def test_a_run_that_a_person_paused_is_left_alone(account: Account) -> None:
    run = fired(account)
    Run.objects.filter(pk=run.pk).update(status="paused", pause_reason="operator")
    assert full(account) == []


def test_an_account_without_a_cap_has_no_full_day(account: Account) -> None:
    account.limits.update(per_day=None)
    fired(account)
    assert full(account) == []


def test_a_message_that_fits_no_day_stays_where_it_is(account: Account) -> None:
    account.limits.update(per_day=2)
    run = fired(account, recipients=2, parts=3)
    assert full(account) == []
    assert days(run) == {WED: 2}


def test_what_no_day_within_reach_has_room_for_stays_where_it_is(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diary, "FURTHEST", 2)
    account.limits.update(per_day=1)
    run = fired(account, recipients=10)
    assert full(account) == []
    assert days(run) == {WED: 10}


# Over by what is planned.


def relieved(account: Account) -> list[replan.Moved]:
    return replan.relieve(account, "message", now=WEDNESDAY)


def test_only_what_is_too_much_is_moved(account: Account) -> None:
    AttemptFactory.create_batch(5, test_send=True, account=account, at=WEDNESDAY - timedelta(hours=1))
    run = fired(account)
    relieved(account)
    assert days(run) == {WED: 15, THU: 20, FRI: 15}


def test_what_is_under_way_counts_as_sent(account: Account) -> None:
    run = fired(account, recipients=25)
    held = run.targets.order_by("pk")[:3].values("pk")
    RunTarget.objects.filter(pk__in=held).update(status="sending", fence=1, claimed_at=WEDNESDAY)
    relieved(account)
    later = run.targets.filter(not_before__gte=THURSDAY_OPENING)
    assert later.count() == 5


def test_what_fits_is_left_alone(account: Account) -> None:
    run = fired(account, recipients=20)
    assert relieved(account) == []
    run.refresh_from_db()
    assert run.summary == ""


def test_a_warm_up_has_more_room_every_day(account: Account) -> None:
    Account.objects.filter(pk=account.pk).update(warmup_start=5, warmup_step=5, warmup_ceiling=100)
    account.limits.update(per_day=12)
    run = fired(account, recipients=30)
    relieved(account)
    assert days(run) == {WED: 5, THU: 10, FRI: 12, MON: 3}
