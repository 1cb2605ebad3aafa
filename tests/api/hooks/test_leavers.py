"""A webhook of a team member stops when they leave."""

from collections.abc import Callable

import pytest

from accounts.models import Delivery, Role, TeamMate, User, Webhook
from accounts.models.webhook import EventType
from activity.models import Notification
from api.hooks import deliver, leavers, manage
from tests.factories import DeliveryFactory, OperatorFactory, StaffFactory, TeamMateFactory

HERE = "https://example.com/mine"


@pytest.fixture
def manager(owner: User) -> User:
    found = OperatorFactory.create(username="manager")
    TeamMateFactory.create(owner=owner, mate=found, role=Role.MANAGE)
    return found


@pytest.fixture
def webhook(owner: User, manager: User) -> Webhook:
    return manage.make(owner, url=HERE, events=list(EventType), by=manager).webhook


def remove(mate: User) -> None:
    TeamMate.objects.filter(mate=mate).delete()


def demote(mate: User) -> None:
    TeamMate.objects.filter(mate=mate).update(role=Role.READ)


def deactivate(mate: User) -> None:
    User.objects.filter(pk=mate.pk).update(is_active=False)


def delete(mate: User) -> None:
    mate.delete()


@pytest.mark.parametrize("leave", [remove, demote, deactivate, delete])
def test_it_stops_and_its_owner_is_told(
    webhook: Webhook, owner: User, manager: User, leave: Callable[[User], None]
) -> None:
    waiting = DeliveryFactory.create(webhook=webhook)
    assert leavers.stop_forsaken() == 0
    leave(manager)
    assert deliver._still_mine(webhook.pk) is None  # also before the next tick
    assert leavers.stop_forsaken() == 1
    assert leavers.stop_forsaken() == 0
    webhook.refresh_from_db()
    assert "no longer in the team" in webhook.switched_off_reason
    assert Delivery.objects.get(pk=waiting.pk).state == "given_up"
    assert HERE in Notification.objects.get(owner=owner).body


def test_the_owner_takes_it_over(webhook: Webhook, owner: User, manager: User) -> None:
    remove(manager)
    leavers.stop_forsaken()
    manage.switch_on(webhook, by=owner)
    assert leavers.stop_forsaken() == 0
    assert deliver._still_mine(webhook.pk) is not None


def test_an_address_that_they_chose_for_a_webhook_of_the_owner_stops_too(owner: User, manager: User) -> None:
    own = manage.make(owner, url="https://example.com/owner", events=list(EventType), by=owner).webhook
    manage.change(own, events=[EventType.REPLY], by=manager)
    remove(manager)
    assert leavers.stop_forsaken() == 0
    TeamMateFactory.create(owner=owner, mate=manager, role=Role.MANAGE)
    manage.change(own, url=HERE, by=manager)
    remove(manager)
    assert leavers.stop_forsaken() == 1


def test_webhooks_of_owners_and_staff_go_on(owner: User) -> None:
    manage.make(owner, url=HERE, events=list(EventType), by=owner)
    manage.make(owner, url=HERE, events=list(EventType), by=StaffFactory.create())
    assert leavers.stop_forsaken() == 0
