"""Addresses, notices and preferences that the database itself refuses."""

from datetime import time

import pytest
from django.db.models import F, Model
from django.utils import timezone

from notices.models import Notice
from tests.factories import (
    AccountEscalationFactory,
    EscalationFactory,
    FollowFactory,
    NoticeAddressFactory,
    NoticeFactory,
    NotificationOutboxFactory,
    PreferencesFactory,
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
    changed("a way that is not known", "notice_way_known", NoticeAddressFactory, way="pigeon"),
    changed("a rhythm that is not known", "notice_rhythm_known", NoticeAddressFactory, rhythm="yearly"),
    changed("a state that is not known", "notice_state_known", NoticeFactory, {"sent": True}, state="lost"),
    changed("an end of what still waits", "notice_ends_once", NoticeFactory, ended_at=timezone.now()),
    doubled("two that wait about one thing", "notice_collapsed", NoticeFactory, "address", "kind", "subject"),
    changed("quiet hours without an end", "preferences_quiet_hours", PreferencesFactory, quiet_from=time(22)),
    doubled(
        "two preferences of one person", "notices_preferences_person_id_key", PreferencesFactory, "person"
    ),
    doubled("to follow somebody twice", "follow_once", FollowFactory, "person", "owner"),
    doubled("two escalations of one run", "notices_escalation_run_id_key", EscalationFactory, "run"),
    doubled(
        "two escalations of one account",
        "notices_accountescalation_account_id_key",
        AccountEscalationFactory,
        "account",
    ),
    changed("to follow oneself", "follow_not_self", FollowFactory, person=F("owner")),
]


@pytest.mark.parametrize("refusal", as_parameters(REFUSALS))
def test_the_database_refuses(refusal: Refusal) -> None:
    refusal.check()


def test_every_constraint_is_tried() -> None:
    assert declared("notices") - {refusal.constraint for refusal in REFUSALS} == set()


@pytest.mark.parametrize(("model", "column"), numbers_from_zero("notices"))
def test_the_database_refuses_a_number_below_zero(model: type[Model], column: str) -> None:
    check_below_zero(model, column)


def test_what_was_sent_may_happen_again() -> None:
    sent = NoticeFactory.create(sent=True)
    again = NoticeFactory.create(address=sent.address, kind=sent.kind, subject=sent.subject)
    assert again.state == Notice.State.PENDING


def test_a_notification_is_in_the_outbox_once() -> None:
    row = NotificationOutboxFactory.create()
    assert row.pk == row.notification.pk
