"""Handing over above the owner's number, or to a marked account, waits for a second person."""

import pytest

from accounts.models import Account, Approval, User
from delivery.hand_over.doors import hand_over_all
from delivery.hand_over.split import Wish
from delivery.models import Run
from reminders.approvals.deciding import approve
from reminders.fire import fire
from tests.delivery.stage import add_up
from tests.factories import AccountFactory, ApprovalNumberFactory, ReminderFactory

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis")]


@pytest.fixture
def shop(owner: User) -> Account:
    return AccountFactory.create(owner=owner, name="Shop")


@pytest.fixture
def run(owner: User, sender: User) -> Run:
    office = AccountFactory.create(owner=owner, name="Office")
    made = fire(
        ReminderFactory.create(
            owner=owner, accounts=[office], recipients=4, around_the_clock=True, name="Rent"
        )
    )
    ApprovalNumberFactory.create(owner=owner, above=3)
    return made


def at(run: Run, account: Account) -> int:
    return run.targets.filter(account=account).count()


def test_above_the_number_it_waits_and_the_approval_hands_over(
    run: Run, shop: Account, owner: User, sender: User
) -> None:
    report = hand_over_all([run], Wish(to=[shop.pk]), by=owner)
    assert (report.moved, report.refused) == (0, [])
    why = "What goes to more than 3 recipients needs approval: these are 4."
    assert report.waiting == [f"“Rent” waits for approval. {why} Nothing has moved yet."]
    assert at(run, shop) == 0
    asked = Approval.objects.get()
    assert (asked.run, asked.title) == (run, "Rent to Shop")
    approve(asked, content=asked.content, by=sender)
    assert at(run, shop) == 4
    add_up(Run.objects.get(pk=run.pk))


def test_up_to_the_number_it_moves_at_once(run: Run, shop: Account, owner: User) -> None:
    owner.approval_number.delete()
    assert hand_over_all([run], Wish(to=[shop.pk]), by=owner).moved == 4
    assert not Approval.objects.exists()


def test_to_a_marked_account_it_waits(run: Run, shop: Account, owner: User) -> None:
    owner.approval_number.delete()
    Account.objects.filter(pk=shop.pk).update(needs_approval=True)
    assert hand_over_all([run], Wish(to=[shop.pk]), by=owner).waiting
    assert "Shop" in Approval.objects.get().why


def test_asking_twice_is_one_request(run: Run, shop: Account, owner: User) -> None:
    for _ in range(2):
        hand_over_all([run], Wish(to=[shop.pk]), by=owner)
    assert Approval.objects.count() == 1
