"""Ledger rows, inbound events and notifications that the database itself refuses."""

import pytest
from django.db.models import Model

from tests.factories import (
    AccountDayFactory,
    AttemptFactory,
    InboundFactory,
    NotificationFactory,
    PushSubscriptionFactory,
)
from tests.refusals import (
    Refusal,
    as_parameters,
    changed,
    check_below_zero,
    declared,
    doubled,
    numbers_from_zero,
)

pytestmark = pytest.mark.django_db

REFUSALS = [
    changed("an attempt with an unknown outcome", "attempt_outcome_known", AttemptFactory, outcome="lucky"),
    changed("an attempt of an unknown action", "attempt_action_known", AttemptFactory, action="wave"),
    doubled("one inbound event twice", "inbound_once", InboundFactory, "account", "event_id"),
    doubled("a day of an account twice", "account_day_once", AccountDayFactory, "account", "day"),
    changed("an inbound event of an unknown kind", "inbound_kind_known", InboundFactory, kind="rumour"),
    doubled("the same news twice for one owner", "notification_once", NotificationFactory, "owner", "key"),
    changed("news of an unknown kind", "notification_kind_known", NotificationFactory, kind="gossip"),
    doubled(
        "one browser subscribed twice",
        "activity_pushsubscription_endpoint_key",
        PushSubscriptionFactory,
        "endpoint",
    ),
]


@pytest.mark.parametrize("refusal", as_parameters(REFUSALS))
def test_the_database_refuses(refusal: Refusal) -> None:
    refusal.check()


def test_every_constraint_is_tried() -> None:
    assert declared("activity") - {refusal.constraint for refusal in REFUSALS} == set()


@pytest.mark.parametrize(("model", "column"), numbers_from_zero("activity"))
def test_the_database_refuses_a_number_below_zero(model: type[Model], column: str) -> None:
    check_below_zero(model, column)


def test_two_accounts_may_hear_of_events_with_one_id() -> None:
    first = InboundFactory.create()
    assert InboundFactory.create(event_id=first.event_id).pk != first.pk


def test_the_same_news_may_go_to_two_owners() -> None:
    first = NotificationFactory.create()
    assert NotificationFactory.create(key=first.key).pk != first.pk
