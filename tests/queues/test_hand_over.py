"""Items that are handed over to another account: edited, planned again, added to, and back again (SPEC S8, Q2)."""

from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.models import Account, User
from delivery import lifecycle
from delivery.hand_over.move import hand_over
from delivery.hand_over.split import Wish
from delivery.models import Run
from delivery.states import AccountStatus, RunStatus
from queues.actions import Took, put, replan
from queues.models import Item, Queue
from queues.runs import runs_of
from tests.factories import AccountFactory, QueueFactory
from tests.queues.test_actions import entry

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis")]

HOUR = timedelta(hours=1)


@pytest.fixture
def office(owner: User) -> Account:
    return AccountFactory.create(owner=owner, name="Office")


@pytest.fixture
def shop(owner: User) -> Account:
    return AccountFactory.create(owner=owner, name="Shop")


@pytest.fixture
def queue(owner: User, office: Account, shop: Account) -> Queue:
    """A queue whose items asked for an account that was stopped, and were handed over to another one."""
    queue = QueueFactory.create(owner=owner, accounts=[office, shop], window_start_hour=0, window_end_hour=24)
    put(queue, [entry(n, sender="Office") for n in (1, 2)], source="file", by=None)
    lifecycle.stop_account(office, status=AccountStatus.FLAGGED, reason="The service blocked it.")
    hand_over(runs_of(queue).get(), Wish(to=[shop.pk]))
    return queue


def accounts_of(queue: Queue) -> dict[str, str]:
    rows = Item.objects.filter(queue=queue).order_by("pk")
    return dict(rows.values_list("own_id", "target__account__name"))


def test_an_item_that_is_edited_stays_with_its_new_account(queue: Queue) -> None:
    (result,) = put(queue, [entry(1, sender="Office", text="New")], source="file", by=None)
    assert result.took == Took.CHANGED
    assert accounts_of(queue) == {"row-1": "Shop", "row-2": "Shop"}
    assert {run.status for run in runs_of(queue)} == {RunStatus.RUNNING}


def test_so_does_one_that_is_planned_again(queue: Queue) -> None:
    ids = list(Item.objects.values_list("pk", flat=True))
    assert replan(queue, item_ids=ids, planned_at=timezone.now() + HOUR, by=None).done == 2
    assert accounts_of(queue) == {"row-1": "Shop", "row-2": "Shop"}


def test_one_that_is_given_another_sender_goes_there(queue: Queue, owner: User) -> None:
    other = AccountFactory.create(owner=owner, name="Branch")
    queue.queue_accounts.create(account=other, position=3)
    put(queue, [entry(1, sender="Branch")], source="file", by=None)
    assert accounts_of(queue)["row-1"] == "Branch"


def test_new_items_for_the_stopped_account_do_not_hold_up_those_that_moved(
    queue: Queue, office: Account, shop: Account
) -> None:
    put(queue, [entry(3, sender="Office"), entry(4, sender="Shop")], source="file", by=None)
    of_shop = Run.objects.filter(targets__account=shop)
    assert {run.status for run in of_shop} == {RunStatus.RUNNING}
    assert {run.status for run in Run.objects.filter(targets__account=office)} == {RunStatus.PAUSED}


def test_they_may_be_handed_back(queue: Queue, office: Account, shop: Account) -> None:
    lifecycle.start_account(office)
    (run,) = runs_of(queue)
    assert hand_over(run, Wish(to=[office.pk])).split.moves == {office.pk: 2}
    assert accounts_of(queue) == {"row-1": "Office", "row-2": "Office"}
    run.refresh_from_db()
    assert (run.status, run.pending) == (RunStatus.RUNNING, 2)
