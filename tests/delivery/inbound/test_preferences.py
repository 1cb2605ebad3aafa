"""Wishes about our messages that people told WhatsApp, not us."""

from datetime import UTC, datetime, timedelta

import pytest

from accounts.models import Account, ConsentChange, Recipient
from accounts.recipients import consent
from activity.models import Inbound
from delivery.inbound import store
from delivery.transports.base import AddressLearnt, ConsentTold, Known
from reminders.conversations import replies
from tests.factories import AccountFactory, RecipientFactory

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis")]

NOON = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)
NUMBER = "+60123456789"


@pytest.fixture
def account() -> Account:
    return AccountFactory.create()


@pytest.fixture
def anna(account: Account) -> Recipient:
    return RecipientFactory.create(owner=account.owner, address=NUMBER)


def tell(account: Account, *, wanted: bool, minute: int = 0, sender: str = NUMBER) -> None:
    at = NOON + timedelta(minutes=minute)
    event = ConsentTold(event_id=f"p:{sender}:{wanted}:{minute}", sender=sender, wanted=wanted, at=at)
    store.store(account, [event])
    replies.work(account.pk)


def is_out(recipient: Recipient) -> bool:
    recipient.refresh_from_db()
    return recipient.opted_out_at is not None


def test_who_stops_messages_in_whatsapp_is_opted_out_and_who_resumes_them_back(
    account: Account, anna: Recipient
) -> None:
    tell(account, wanted=False)
    assert is_out(anna)
    tell(account, wanted=True, minute=1)
    assert not is_out(anna)
    assert [(change.move, change.how) for change in ConsentChange.objects.order_by("pk")] == [
        ("out", "stopped messages in WhatsApp"),
        ("in", "resumed messages in WhatsApp"),
    ]
    assert all(row.handled_at for row in Inbound.objects.all())


def test_the_last_word_counts_in_whatever_order_it_comes(account: Account, anna: Recipient) -> None:
    tell(account, wanted=False, minute=2)
    tell(account, wanted=True, minute=1)
    assert is_out(anna)


def test_who_told_us_to_stop_is_not_brought_back_by_a_preference(account: Account, anna: Recipient) -> None:
    consent.opt_out(anna, how="replied STOP")
    tell(account, wanted=False)
    tell(account, wanted=True, minute=1)
    assert is_out(anna)


def test_a_preference_is_no_reply(account: Account, anna: Recipient) -> None:
    tell(account, wanted=False)
    anna.refresh_from_db()
    assert anna.last_inbound_at is None


def test_a_preference_of_nobody_changes_nothing(account: Account) -> None:
    tell(account, wanted=False, sender="+60129999999")
    assert Inbound.objects.get().handled_at is not None
    assert not ConsentChange.objects.exists()


def test_a_preference_of_somebody_hidden_waits_until_they_are_known(
    account: Account, anna: Recipient
) -> None:
    tell(account, wanted=False, sender="MY.77")
    assert Inbound.objects.get().waits_for == "MY.77"
    store.store(account, [AddressLearnt(event_id="a", known=Known(hidden="MY.77", address=NUMBER))])
    replies.work(account.pk)
    assert is_out(anna)
    assert Inbound.objects.get().waits_for == ""
