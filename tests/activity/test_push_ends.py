"""Whoever may not log in any more, or has a new password, gets nothing in the browsers of before."""

import pytest

from accounts.models import User
from activity import push
from activity.models import PushSubscription
from tests.factories import NotificationFactory, PushSubscriptionFactory

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def browser(owner: User) -> PushSubscription:
    return PushSubscriptionFactory.create(user=owner)


def test_deactivation_forgets_the_browsers(owner: User) -> None:
    owner.is_active = False
    owner.save()
    assert not PushSubscription.objects.exists()


def test_a_new_password_forgets_the_browsers(owner: User) -> None:
    owner.set_password("another-horse-8")
    owner.save()
    assert not PushSubscription.objects.exists()


def test_another_name_forgets_nothing(owner: User, stranger: User) -> None:
    owner.first_name = "Ann"
    owner.save()
    stranger.set_password("another-horse-8")
    stranger.save()
    assert PushSubscription.objects.exists()


def test_who_was_deactivated_in_sql_is_pushed_nothing(
    owner: User, browser: PushSubscription, monkeypatch: pytest.MonkeyPatch
) -> None:
    User.objects.filter(pk=owner.pk).update(is_active=False)
    made = NotificationFactory.create(owner=owner)
    monkeypatch.setattr(push, "content", None)  # to write it would fail
    push.send(browser.pk, made.pk)
