"""Hidden addresses: who is behind them is learnt wherever a service says so, and what waited for that counts then."""

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from accounts.models import Account, AddressAlias, ConsentChange, Recipient
from activity.models import Inbound
from delivery.inbound import aliases, hidden_addresses, store
from delivery.inbound.aliases import Source
from delivery.transports.base import AddressLearnt, InboundEvent, Known, Receipt, ReceiptState
from delivery.transports.base import Inbound as Message
from reminders.conversations import replies
from tests.delivery.service import serving
from tests.factories import (
    AccountFactory,
    AddressAliasFactory,
    FollowUpFactory,
    RecipientFactory,
    RunTargetFactory,
)
from tests.reminders.conversations.conversation import hear, sent

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis")]

LID, NUMBER = "77@lid", "+60123456789"


def take(account: Account, *events: InboundEvent) -> None:
    store.store(account, events)
    replies.work(account.pk)


def told(lid: str = LID, number: str = NUMBER) -> AddressLearnt:
    return AddressLearnt(event_id=f"{lid}:{number}", known=Known(hidden=lid, address=number))


@pytest.fixture
def account() -> Account:
    return AccountFactory.create()


@pytest.fixture
def anna(account: Account) -> Recipient:
    return RecipientFactory.create(owner=account.owner, address=NUMBER)


# Learning


def test_what_a_message_tells_is_kept_with_its_source(account: Account) -> None:
    take(account, told())
    alias = AddressAlias.objects.get()
    assert (alias.account, alias.alias, alias.address, alias.source) == (account, LID, NUMBER, "message")


def test_the_newest_word_holds_and_the_same_word_writes_nothing(account: Account) -> None:
    assert aliases.learn(account, [Known(hidden=LID, address=NUMBER)], Source.GROUP)
    first = AddressAlias.objects.get()
    assert not aliases.learn(account, [Known(hidden=LID, address=NUMBER)], Source.MESSAGE)
    assert AddressAlias.objects.get().learnt_at == first.learnt_at
    assert aliases.learn(account, [Known(hidden=LID, address="+60129999999")], Source.MESSAGE)
    assert AddressAlias.objects.get().address == "+60129999999"


@pytest.mark.parametrize(
    ("hidden", "address"),
    [
        ("", NUMBER),
        (LID, ""),
        (LID, "78@lid"),
        (NUMBER, LID),
        ("120363@g.us", NUMBER),
        (LID, "12"),
        ("\x00", "\x00"),
    ],
)
def test_what_is_no_pair_of_addresses_is_not_kept(account: Account, hidden: str, address: str) -> None:
    assert not aliases.learn(account, [Known(hidden=hidden, address=address)], Source.MESSAGE)
    assert not AddressAlias.objects.exists()


def test_a_receipt_that_names_a_hidden_address_tells_whose_it_is(account: Account, anna: Recipient) -> None:
    target = RunTargetFactory.create(account=account, recipient=anna, sent=True)
    read = Receipt(
        event_id="r1", provider_id=target.provider_id, state=ReceiptState.READ, at=timezone.now(), chat=LID
    )
    take(account, read)
    alias = AddressAlias.objects.get()
    assert (alias.alias, alias.address, alias.source) == (LID, NUMBER, "receipt")


def test_a_receipt_of_a_group_tells_nothing(account: Account) -> None:
    choir = RecipientFactory.create(owner=account.owner, group=True)
    target = RunTargetFactory.create(account=account, recipient=choir, sent=True)
    read = Receipt(
        event_id="r1", provider_id=target.provider_id, state=ReceiptState.READ, at=timezone.now(), chat=LID
    )
    take(account, read)
    assert not AddressAlias.objects.exists()


# Using


def test_a_reply_from_a_known_address_is_that_persons(account: Account, anna: Recipient) -> None:
    AddressAliasFactory.create(account=account, alias=LID, address=NUMBER)
    assert hear(account, "Yes", chat=LID).recipient == anna


def test_stop_from_a_known_address_opts_out_under_all_addresses(account: Account, anna: Recipient) -> None:
    AddressAliasFactory.create(account=account, alias=LID, address=NUMBER)
    hidden = RecipientFactory.create(owner=account.owner, address=LID)
    hear(account, "STOP", chat=LID)
    assert set(Recipient.objects.filter(opted_out_at__isnull=False)) == {anna, hidden}


def test_a_recipient_that_was_added_by_the_hidden_address_replies_by_number(account: Account) -> None:
    AddressAliasFactory.create(account=account, alias=LID, address=NUMBER)
    hidden = RecipientFactory.create(owner=account.owner, address=LID)
    assert hear(account, "Yes", chat=NUMBER).recipient == hidden


def test_what_another_account_knows_says_nothing_here(account: Account, anna: Recipient) -> None:
    AddressAliasFactory.create(alias=LID, address=NUMBER)
    assert hear(account, "Yes", chat=LID).recipient is None


# Waiting


def test_a_reply_from_an_unknown_address_waits_and_counts_once_it_is_known() -> None:
    target = sent(second=0)
    follow_up = FollowUpFactory.create(target=target)
    heard = hear(target.account, "I will be there", chat=LID)
    assert (heard.recipient, heard.waits_for) == (None, LID)
    assert heard.handled_at is not None

    take(target.account, told(number=target.recipient.address))
    heard.refresh_from_db()
    assert (heard.recipient, heard.target, heard.waits_for) == (target.recipient, target, "")
    follow_up.refresh_from_db()
    assert follow_up.status == "removed"


def test_stop_from_an_unknown_address_is_not_lost_however_late_it_is_known(
    account: Account, anna: Recipient
) -> None:
    heard = hear(account, "STOP", chat=LID)
    Inbound.objects.filter(pk=heard.pk).update(created_at=timezone.now() - timedelta(days=20))
    target = RunTargetFactory.create(account=account, recipient=anna, sent=True)
    take(
        account,
        Receipt(
            event_id="r1",
            provider_id=target.provider_id,
            state=ReceiptState.READ,
            at=timezone.now(),
            chat=LID,
        ),
    )
    anna.refresh_from_db()
    assert anna.opted_out_at is not None
    assert ConsentChange.objects.get().how == "replied STOP"


def test_the_sweep_takes_up_what_became_known_elsewhere(account: Account, anna: Recipient) -> None:
    hear(account, "STOP", chat=LID)
    aliases.learn(account, [Known(hidden=LID, address=NUMBER)], Source.GROUP)
    replies.sweep()
    anna.refresh_from_db()
    assert anna.opted_out_at is not None
    replies.sweep()
    assert ConsentChange.objects.count() == 1


def test_stop_in_a_group_by_an_unknown_address_waits_without_being_the_groups_reply_twice(
    account: Account, anna: Recipient
) -> None:
    choir = RecipientFactory.create(owner=account.owner, group=True)
    heard = hear(account, "STOP", chat=choir.address, sender=LID)
    assert (heard.recipient, heard.waits_for) == (choir, LID)
    Recipient.objects.filter(pk=choir.pk).update(attempts=2)

    take(account, told())
    for row in (anna, choir, heard):
        row.refresh_from_db()
    assert anna.opted_out_at is not None
    assert (choir.opted_out_at, choir.attempts) == (None, 2)
    assert (heard.recipient, heard.waits_for) == (choir, "")


def test_somebody_who_is_no_recipient_waits_no_longer_once_known(account: Account) -> None:
    heard = hear(account, "Hi", chat=LID)
    take(account, told())
    heard.refresh_from_db()
    assert (heard.recipient, heard.waits_for) == (None, "")
    assert heard.handled_at is not None


def test_an_open_number_waits_for_nothing(account: Account) -> None:
    assert hear(account, "Hi", chat=NUMBER).waits_for == ""
    assert hear(account, "Hi", chat="120363000000000009@g.us", sender=LID).waits_for == ""


@pytest.mark.parametrize("chat", ["Y2FwaV9ncm91cDox", "120363000000000009@g.us"])
def test_a_message_in_a_group_that_is_no_recipient_is_nobodys_reply(
    account: Account, anna: Recipient, chat: str
) -> None:
    """Meta's groups have names that only Meta understands."""
    message = Message(
        event_id="m1",
        provider_id="m1",
        sender=NUMBER,
        chat=chat,
        text="STOP",
        at=datetime(2026, 11, 18, tzinfo=UTC),
    )
    take(account, message)
    assert Inbound.objects.get().recipient is None


# Asking


def test_a_service_that_can_be_asked_is_asked_who_wrote(anna: Recipient, account: Account) -> None:
    with serving() as service:
        credentials = {"base_url": service.url, "api_key": "k", "session": "default"}
        Account.objects.filter(pk=account.pk).update(transport="waha")
        account.refresh_from_db()
        account.credentials = credentials
        account.save()
        hear(account, "STOP", chat=LID)
        hear(account, "Hi", chat="78@lid")
        service.answers["GET", "/api/default/lids/77%40lid"] = 200, {"lid": LID, "pn": "60123456789@c.us"}
        hidden_addresses.ask_all()
        replies.sweep()
        anna.refresh_from_db()
        assert anna.opted_out_at is not None
        assert AddressAlias.objects.get().source == "asked"

        service.asked.clear()
        Inbound.objects.update(created_at=timezone.now() - timedelta(minutes=11))
        hidden_addresses.ask_all()
        assert service.asked == []


def test_a_service_that_does_not_answer_loses_nothing(anna: Recipient, account: Account) -> None:
    account.transport = "waha"
    account.credentials = {"base_url": "http://127.0.0.1:9", "api_key": "k", "session": "default"}
    account.save()
    heard = hear(account, "STOP", chat=LID)
    hidden_addresses.ask_all()
    heard.refresh_from_db()
    assert heard.waits_for == LID
