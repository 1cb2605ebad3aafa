"""Handing over the rest of a run: what moves, what stays, and what follows."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from django.core.exceptions import PermissionDenied
from django.utils import timezone

from accounts.models import Account, Contact, Recipient, User
from delivery import lifecycle
from delivery.engine import claims
from delivery.engine.tick import tick
from delivery.hand_over import preview, words
from delivery.hand_over.doors import hand_over_all
from delivery.hand_over.move import hand_over, runs_of
from delivery.hand_over.split import Split, Stays, Wish
from delivery.lifecycle import WrongStateError
from delivery.models import Run, RunAccount, RunTarget
from delivery.states import AccountStatus, PauseReason, RunStatus, TargetStatus
from reminders.fire import fire
from tests.delivery.stage import add_up, becomes
from tests.factories import (
    AccountFactory,
    AttemptFactory,
    ContactFactory,
    LimitFactory,
    RecipientFactory,
    ReminderFactory,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis")]


@pytest.fixture
def office(owner: User) -> Account:
    return AccountFactory.create(owner=owner, name="Office")


@pytest.fixture
def shop(owner: User) -> Account:
    return AccountFactory.create(owner=owner, name="Shop")


def sent_by(account: Account, people: list[Recipient] | int = 4, **values: object) -> Run:
    return fire(
        ReminderFactory.create(
            owner=account.owner, accounts=[account], recipients=people, around_the_clock=True, **values
        )
    )


def senders(run: Run) -> dict[int, int]:
    return dict(run.targets.values_list("recipient_id", "account_id"))


def flag(account: Account) -> None:
    lifecycle.stop_account(account, status=AccountStatus.FLAGGED, reason="The service blocked it.")


def test_the_rest_of_a_flagged_account_moves_and_goes_on(owner: User, office: Account, shop: Account) -> None:
    run = sent_by(office)
    flag(office)
    run.refresh_from_db()
    assert (run.status, run.pause_reason) == (RunStatus.PAUSED, PauseReason.ACCOUNT_FLAGGED)
    done = hand_over(run, Wish(to=[shop.pk]), by=owner)
    assert done.split.moves == {shop.pk: 4}
    run.refresh_from_db()
    assert run.status == RunStatus.RUNNING
    assert set(senders(run).values()) == {shop.pk}
    assert RunAccount.objects.filter(run=run, account=shop, open=True, waits=False).exists()
    shop.refresh_from_db()
    assert shop.wake_at is not None
    add_up(run)


def test_new_people_move_at_once_and_known_ones_only_if_asked(office: Account, shop: Account) -> None:
    people = RecipientFactory.create_batch(5, owner=office.owner)
    for person in people[:2]:
        ContactFactory.create(recipient=person, account=office)
    run = sent_by(office, people)
    done = hand_over(run, Wish(to=[shop.pk]))
    assert (done.split.moved, done.split.stayed) == (3, {Stays.KNOWN: 2})
    assert [senders(run)[person.pk] for person in people[:2]] == [office.pk] * 2
    again = hand_over(run, Wish(to=[shop.pk], known=True))
    assert again.split.moves == {shop.pk: 2}


def test_groups_move_only_where_the_other_account_is_a_member(office: Account, shop: Account) -> None:
    tied, shared, unknown = RecipientFactory.create_batch(3, owner=office.owner, group=True)
    Recipient.objects.filter(pk=tied.pk).update(account=office)
    for group in (tied, shared):
        ContactFactory.create(recipient=group, account=office, member=True)
    ContactFactory.create(recipient=shared, account=shop, member=True)
    run = sent_by(office, [tied, shared, unknown])
    done = hand_over(run, Wish(to=[shop.pk], known=True))
    assert (done.split.moved, done.split.stayed) == (1, {Stays.NOT_A_MEMBER: 2})
    assert senders(run)[shared.pk] == shop.pk


def test_nothing_in_the_air_moves(office: Account, shop: Account) -> None:
    run = sent_by(office, 6, parts=2)
    Account.objects.filter(pk=office.pk).update(fence=3)
    claims.claim(run.pk, office.pk, fence=3, most=2, now=timezone.now())
    half, doubtful = run.targets.filter(status="pending").order_by("pk")[:2]
    RunTarget.objects.filter(pk=half.pk).update(parts_done=1)
    AttemptFactory.create(target=doubtful, account=office, outcome="unknown")
    done = hand_over(run, Wish(to=[shop.pk]))
    assert done.split.stayed == {Stays.BEGUN: 1, Stays.IN_DOUBT: 1}
    stayed = run.targets.filter(account=office)
    assert Counter(stayed.values_list("status", flat=True)) == {"sending": 2, "pending": 2}
    assert run.targets.filter(account=shop).count() == 2
    add_up(run)


def test_the_old_accounts_pump_cannot_send_what_has_moved(office: Account, shop: Account) -> None:
    run = sent_by(office, 1)
    Account.objects.filter(pk__in=[office.pk, shop.pk]).update(fence=3)
    (mine,) = claims.claim(run.pk, office.pk, fence=3, most=1, now=timezone.now())
    lifecycle.pause(run, reason=PauseReason.OPERATOR)
    hand_over(run, Wish(to=[shop.pk]))
    lifecycle.resume(run)
    (theirs,) = claims.claim(run.pk, shop.pk, fence=3, most=1, now=timezone.now())
    assert mine.target_id == theirs.target_id
    assert claims.let_go([mine.target_id], fence=3, now=timezone.now(), account_id=office.pk) == []
    assert run.targets.get().status == "sending"


def test_those_who_stay_with_a_stopped_account_wait_and_hold_up_nobody(
    office: Account, shop: Account
) -> None:
    people = RecipientFactory.create_batch(3, owner=office.owner)
    ContactFactory.create(recipient=people[0], account=office)
    run = sent_by(office, people)
    flag(office)
    hand_over(run, Wish(to=[shop.pk]))
    run.refresh_from_db()
    assert run.status == RunStatus.RUNNING
    share = RunAccount.objects.get(run=run, account=office)
    assert share.waits
    lifecycle.pause(run, reason=PauseReason.OPERATOR)
    assert (
        lifecycle.resume(run).status == RunStatus.RUNNING
    )  # not refused for the account that is left behind
    lifecycle.stop_account(office, status=AccountStatus.OFFLINE, reason="gone")
    run.refresh_from_db()
    assert run.status == RunStatus.RUNNING
    lifecycle.start_account(office)
    share.refresh_from_db()
    assert not share.waits


def test_a_run_pauses_for_its_account_when_only_those_who_stayed_are_left(
    office: Account, shop: Account
) -> None:
    people = RecipientFactory.create_batch(2, owner=office.owner)
    ContactFactory.create(recipient=people[0], account=office)
    with time_machine.travel(datetime(2026, 3, 11, 10, tzinfo=UTC), tick=False) as clock:
        made = ReminderFactory.create(
            owner=office.owner, accounts=[office], recipients=people, window_start_hour=6, window_end_hour=18
        )
        run = fire(made)
        flag(office)
        hand_over(run, Wish(to=[shop.pk]))
        run.refresh_from_db()
        becomes(run, TargetStatus.SENT)
        sent = run.targets.get(status=TargetStatus.SENT)
        RunTarget.objects.filter(pk=sent.pk).update(account=shop)
        RunTarget.objects.filter(run=run, status=TargetStatus.PENDING).update(account=office)
        clock.shift(timedelta(hours=9))
        run = lifecycle.close_window(run)
    assert (run.status, run.pause_reason) == (RunStatus.PAUSED, PauseReason.ACCOUNT_FLAGGED)
    with pytest.raises(WrongStateError, match="Office is flagged"):
        lifecycle.resume(run)


@pytest.fixture
def left(office: Account, shop: Account) -> Run:
    """A run at any hour that was handed over, and of which only those who stayed with their accounts are left."""
    other = AccountFactory.create(owner=office.owner, name="Branch")
    people = RecipientFactory.create_batch(3, owner=office.owner)
    ContactFactory.create(recipient=people[0], account=office)
    ContactFactory.create(recipient=people[1], account=other)
    run = fire(
        ReminderFactory.create(
            owner=office.owner, accounts=[office, other], recipients=people, around_the_clock=True
        )
    )
    flag(office)
    flag(other)
    hand_over(run, Wish(to=[shop.pk]))
    tick()
    run.refresh_from_db()
    assert run.status == RunStatus.RUNNING  # the shop has one to send
    rows = RunTarget.objects.filter(run=run, account=shop)
    rows.update(status=TargetStatus.SENDING, fence=0, claimed_at=timezone.now())
    rows.update(status=TargetStatus.SENT, claimed_at=None)
    Run.objects.filter(pk=run.pk).update(sent=1, pending=2)
    tick()
    run.refresh_from_db()
    return run


def test_a_run_at_any_hour_pauses_when_only_stopped_accounts_have_something_left(left: Run) -> None:
    assert (left.status, left.pause_reason) == (RunStatus.PAUSED, PauseReason.ACCOUNT_FLAGGED)
    assert "Branch stopped sending" in left.summary
    with pytest.raises(WrongStateError, match="Office is flagged"):
        lifecycle.resume(left)


@pytest.mark.parametrize("name", ["Office", "Branch"])
def test_it_goes_on_when_one_of_these_accounts_is_back(left: Run, name: str) -> None:
    lifecycle.start_account(Account.objects.get(name=name))
    left.refresh_from_db()
    assert left.status == RunStatus.RUNNING
    tick()
    left.refresh_from_db()
    assert left.status == RunStatus.RUNNING


def test_it_goes_on_after_a_hand_over_of_the_rest(left: Run, shop: Account) -> None:
    hand_over(left, Wish(to=[shop.pk], known=True))
    tick()
    left.refresh_from_db()
    assert left.status == RunStatus.RUNNING
    assert left.targets.filter(status="pending", account=shop).count() == 2


def test_a_run_that_a_person_paused_stays_paused(office: Account, shop: Account) -> None:
    run = sent_by(office)
    lifecycle.pause(run, reason=PauseReason.OPERATOR)
    hand_over(run, Wish(to=[shop.pk]))
    run.refresh_from_db()
    assert (run.status, run.pause_reason) == (RunStatus.PAUSED, PauseReason.OPERATOR)


def test_an_account_may_share_its_rest_with_another(office: Account, shop: Account) -> None:
    run = sent_by(office, 10)
    hand_over(run, Wish(to=[office.pk, shop.pk]))
    assert Counter(senders(run).values()) == {office.pk: 5, shop.pk: 5}


def test_a_drip_is_planned_anew_for_both_accounts(office: Account, shop: Account) -> None:
    for account in (office, shop):
        LimitFactory.create(account=account, per_day=4)
    run = sent_by(office, 8, dripping=True)
    last = max(run.targets.values_list("not_before", flat=True))
    hand_over(run, Wish(to=[office.pk, shop.pk]))
    days = Counter(
        (account, at.date()) for account, at in run.targets.values_list("account_id", "not_before")
    )
    assert max(days.values()) <= 4
    assert max(run.targets.values_list("not_before", flat=True)) < last
    assert set(senders(run).values()) == {office.pk, shop.pk}


def test_new_people_are_spread_over_the_days_of_the_new_account(office: Account, shop: Account) -> None:
    LimitFactory.create(account=shop, new_per_day=2)
    run = sent_by(office, 5)
    hand_over(run, Wish(to=[shop.pk]))
    soon = timezone.now() + timedelta(minutes=1)
    assert run.targets.filter(not_before__lte=soon).count() == 2


def test_a_run_that_may_be_undone_keeps_its_seconds(office: Account, shop: Account) -> None:
    run = sent_by(office, 2)
    until = timezone.now() + timedelta(minutes=5)
    Run.objects.filter(pk=run.pk).update(
        status=RunStatus.QUEUED, opens_at=until, undo_until=until, started_at=None
    )
    hand_over(run, Wish(to=[shop.pk]))
    run.refresh_from_db()
    assert run.may_be_undone


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"status": "paused"}, "Shop is paused and cannot send"),
        ({"archived_at": timezone.now()}, "Shop is archived and cannot send"),
        ({"channel": "email"}, "Shop is on another channel"),
    ],
)
def test_an_account_that_cannot_take_any_is_refused(
    office: Account, shop: Account, change: dict[str, object], why: str
) -> None:
    run = sent_by(office)
    Account.objects.filter(pk=shop.pk).update(**change)
    with pytest.raises(WrongStateError, match=why):
        hand_over(run, Wish(to=[shop.pk]))
    assert set(senders(run).values()) == {office.pk}


def test_strangers_and_readers_are_refused(
    owner: User, stranger: User, reader: User, office: Account, shop: Account
) -> None:
    run, theirs = sent_by(office), AccountFactory.create(owner=stranger)
    for by in (stranger, reader):
        with pytest.raises(PermissionDenied):
            hand_over(run, Wish(to=[shop.pk]), by=by)
    with pytest.raises(PermissionDenied):
        hand_over(run, Wish(to=[theirs.pk]), by=owner)


def test_a_canceled_run_has_nothing_to_hand_over(office: Account, shop: Account) -> None:
    run = lifecycle.cancel(sent_by(office))
    with pytest.raises(WrongStateError, match="nothing left to hand over"):
        hand_over(run, Wish(to=[shop.pk]))


def test_all_work_of_an_account_moves_at_once(office: Account, shop: Account) -> None:
    runs = [sent_by(office), sent_by(office, 2)]
    flag(office)
    report = hand_over_all(runs_of(office), Wish(to=[shop.pk], of=office.pk), by=office.owner)
    assert (report.moved, len(report.told), report.refused) == (6, 2, [])
    assert runs_of(office) == []
    assert {run.status for run in Run.objects.filter(pk__in=[run.pk for run in runs])} == {"running"}


def test_a_preview_changes_nothing_and_shows_both_courses(office: Account, shop: Account) -> None:
    people = RecipientFactory.create_batch(5, owner=office.owner)
    ContactFactory.create(recipient=people[0], account=office)
    run = sent_by(office, people)
    flag(office)
    run.refresh_from_db()
    found = preview.preview(run, Wish(to=[shop.pk]), now=timezone.now())
    assert found.told == "4 messages to Shop."
    assert found.stays == "1 stays: 1 has talked with this account before."
    assert found.stay.sentence == "Office is flagged: 5 messages wait until it can send again."
    assert found.move is not None
    assert found.move.fits
    assert found.move.sentence.endswith("1 message waits for the present account.")
    assert set(senders(run).values()) == {office.pk}
    assert Contact.objects.count() == 1


def test_the_words_of_a_hand_over(office: Account, shop: Account) -> None:
    split = Split(moves={office.pk: 1, shop.pk: 1_200}, stays={(9, Stays.KNOWN): 2, (9, Stays.IN_DOUBT): 1})
    accounts = {office.pk: office, shop.pk: shop}
    assert words.done("Rent", split, accounts) == (
        "“Rent” was handed over. 1,201 messages: 1,200 to Shop, 1 to Office. "
        "3 stay: 1 may have received it already, 2 have talked with this account before."
    )
