"""The effects of reports: receipts on targets, moves of accounts, messages passed on. Each once, in any order."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection as database
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings

from accounts.models import Account, User
from activity.models import Inbound, Notification
from delivery.inbound import store
from delivery.inbound.handle import handle_event
from delivery.limits.slow_down import SLOWEST
from delivery.models import RunTarget
from delivery.transports.base import (
    AccountState,
    FirstContactsLocked,
    InboundEvent,
    Receipt,
    ReceiptState,
    SessionChanged,
    SlowDownAsked,
)
from delivery.transports.base import Inbound as Message
from reminders.conversations import replies
from tests.factories import AccountFactory, InboundFactory, RecipientFactory, RunFactory, RunTargetFactory

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
NUMBERS = iter(range(10**6))


def minutes(count: float) -> datetime:
    return NOON + timedelta(minutes=count)


def receipt(target: RunTarget, state: ReceiptState, at: datetime = NOON, reason: str = "") -> Receipt:
    name = f"{target.provider_id}:{state}"
    return Receipt(event_id=name, provider_id=target.provider_id, state=state, at=at, reason=reason)


def session(state: AccountState, at: datetime = NOON) -> SessionChanged:
    return SessionChanged(event_id=f"session-{next(NUMBERS)}", state=state, at=at)


def take(account: Account, *events: InboundEvent) -> None:
    store.store(account, events)
    replies.work(account.pk)


@pytest.fixture
def target(db: None) -> RunTarget:
    return RunTargetFactory.create(sent=True, run=RunFactory.create(sent=1))


# Receipts


def test_a_receipt_shows_on_its_target(target: RunTarget) -> None:
    take(target.account, receipt(target, ReceiptState.DELIVERED, minutes(1)))
    take(target.account, receipt(target, ReceiptState.READ, minutes(5)))
    target.refresh_from_db()
    assert (target.delivered_at, target.read_at) == (minutes(1), minutes(5))
    noted = Inbound.objects.filter(account=target.account)
    assert [row.target_id for row in noted] == [target.pk, target.pk]
    assert all(row.handled_at for row in noted)


def test_receipts_may_come_in_the_wrong_order(target: RunTarget) -> None:
    take(target.account, receipt(target, ReceiptState.READ, minutes(5)))
    target.refresh_from_db()
    assert (target.delivered_at, target.read_at) == (minutes(5), minutes(5))  # who read it got it
    take(target.account, receipt(target, ReceiptState.DELIVERED, minutes(1)))
    target.refresh_from_db()
    assert (target.delivered_at, target.read_at) == (minutes(1), minutes(5))


def test_a_receipt_that_comes_twice_changes_nothing(target: RunTarget) -> None:
    take(target.account, receipt(target, ReceiptState.DELIVERED, minutes(1)))
    take(target.account, receipt(target, ReceiptState.DELIVERED, minutes(9)))
    target.refresh_from_db()
    assert target.delivered_at == minutes(1)
    assert Inbound.objects.count() == 1


def test_a_receipt_may_come_before_its_message_is_noted(target: RunTarget) -> None:
    early = receipt(target, ReceiptState.DELIVERED)
    provider_id, target.provider_id = target.provider_id, ""
    target.save()
    take(target.account, early)
    assert Inbound.objects.get().handled_at is None

    target.provider_id = provider_id
    target.save()
    replies.sweep()
    target.refresh_from_db()
    assert target.delivered_at == NOON


def test_a_receipt_of_nothing_that_we_sent_is_forgotten_after_a_while(db: None) -> None:
    stray = InboundFactory.create(receipt=True, provider_id="typed-on-the-phone", state="delivered")
    replies.sweep()
    stray.refresh_from_db()
    assert stray.handled_at is None
    Inbound.objects.update(created_at=timezone.now() - timedelta(minutes=11))
    replies.sweep()
    stray.refresh_from_db()
    assert stray.handled_at is not None


def test_another_accounts_receipt_touches_nothing(target: RunTarget) -> None:
    other = AccountFactory.create(owner=target.account.owner)
    take(other, receipt(target, ReceiptState.READ))
    target.refresh_from_db()
    assert target.read_at is None


def test_a_failure_that_is_told_later_is_shown_and_the_target_stays_sent(target: RunTarget) -> None:
    take(target.account, receipt(target, ReceiptState.FAILED, reason="463"))
    target.refresh_from_db()
    assert (target.status, target.delivered_at, target.error) == ("sent", None, "")
    assert (target.returned_at, target.return_kind, target.return_reason) == (NOON, "temporary", "463")


@pytest.fixture
def album(target: RunTarget) -> RunTarget:
    """A message of three parts, all sent."""
    target.earlier_ids, target.parts_done = ["part-0", "part-1"], 3
    target.save()
    return target


def of_part(provider_id: str, state: ReceiptState, at: datetime) -> Receipt:
    return Receipt(event_id=f"{provider_id}:{state}", provider_id=provider_id, state=state, at=at)


def test_several_parts_have_arrived_when_the_last_of_them_has(album: RunTarget) -> None:
    parts = [album.provider_id, "part-0", "part-1"]
    for number, part in enumerate(parts[:2]):
        take(album.account, of_part(part, ReceiptState.DELIVERED, minutes(number)))
    album.refresh_from_db()
    assert (album.delivered_at, album.read_at) == (None, None)

    take(album.account, of_part(parts[2], ReceiptState.DELIVERED, minutes(7)))
    album.refresh_from_db()
    assert (album.delivered_at, album.read_at) == (minutes(7), None)

    take(album.account, *(of_part(part, ReceiptState.READ, minutes(9)) for part in parts))
    album.refresh_from_db()
    assert (album.delivered_at, album.read_at) == (minutes(7), minutes(9))


def test_a_part_that_failed_shows_on_the_whole_message(album: RunTarget) -> None:
    take(album.account, of_part("part-1", ReceiptState.FAILED, NOON))
    take(album.account, *(of_part(part, ReceiptState.READ, NOON) for part in (album.provider_id, "part-0")))
    album.refresh_from_db()
    assert (album.delivered_at, album.read_at) == (None, None)
    assert (album.returned_at, album.return_kind) == (NOON, "temporary")


def test_nothing_has_arrived_while_parts_are_still_to_be_sent(db: None) -> None:
    target = RunTargetFactory.create(claimed=True, provider_id="part-0", parts_done=1)
    take(target.account, of_part("part-0", ReceiptState.READ, minutes(1)))
    target.refresh_from_db()
    assert (target.delivered_at, target.read_at) == (None, None)

    RunTarget.objects.update(
        status="sent", provider_id="part-1", earlier_ids=["part-0"], parts_done=2, settled_at=NOON
    )
    take(target.account, of_part("part-1", ReceiptState.DELIVERED, minutes(2)))
    target.refresh_from_db()
    assert (target.delivered_at, target.read_at) == (minutes(2), None)


def test_a_thousand_receipts_cost_a_handful_of_queries(
    target: RunTarget, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    targets = RunTargetFactory.create_batch(30, run=target.run, account=target.account, sent=True)
    store.store(target.account, [receipt(each, ReceiptState.DELIVERED) for each in targets])
    with django_assert_max_num_queries(12):
        replies.work(target.account.pk)
    assert RunTarget.objects.filter(delivered_at=NOON).count() == 30


# Session changes


def test_an_account_that_lost_its_connection_goes_offline_and_its_owner_is_told(
    owner: User, django_capture_on_commit_callbacks: object
) -> None:
    account = AccountFactory.create(owner=owner, name="Office phone")
    with django_capture_on_commit_callbacks(execute=True):  # type: ignore[operator]  # a fixture
        take(account, session(AccountState.STOPPED))
    account.refresh_from_db()
    assert account.status == "offline"
    assert Notification.objects.get(owner=owner).title == "Office phone stopped sending"

    with django_capture_on_commit_callbacks(execute=True):  # type: ignore[operator]  # a fixture
        take(account, session(AccountState.WORKING, minutes(1)))
    account.refresh_from_db()
    assert account.status == "active"
    assert Notification.objects.filter(owner=owner, title="Office phone is connected again").exists()


def test_what_happened_earlier_does_not_undo_what_is_known(owner: User) -> None:
    account = AccountFactory.create(owner=owner, status="offline")
    take(account, session(AccountState.WORKING, minutes(5)))
    take(account, session(AccountState.STOPPED, minutes(1)))
    account.refresh_from_db()
    assert account.status == "active"


def test_a_pause_of_a_person_outlasts_a_reconnection(owner: User) -> None:
    account = AccountFactory.create(owner=owner, paused=True)
    take(account, session(AccountState.STOPPED), session(AccountState.WORKING, minutes(1)))
    account.refresh_from_db()
    assert account.status == "paused"


def test_a_code_that_nobody_scanned_is_no_news(
    owner: User, django_capture_on_commit_callbacks: object
) -> None:
    account = AccountFactory.create(owner=owner, pairing=True)
    with django_capture_on_commit_callbacks(execute=True):  # type: ignore[operator]  # a fixture
        take(account, session(AccountState.STOPPED))
    account.refresh_from_db()
    assert account.status == "unpaired"
    assert not Notification.objects.exists()


def test_a_lock_of_first_contacts_is_kept(owner: User) -> None:
    account = AccountFactory.create(owner=owner)
    until = timezone.now() + timedelta(hours=6)
    take(account, FirstContactsLocked(event_id="lock-1", at=timezone.now(), until=until))
    account.refresh_from_db()
    assert (account.status, account.first_contacts_until) == ("active", until)


# Messages


def message(**values: str) -> Message:
    given = {"sender": "60123456789@c.us", "chat": "60123456789@c.us", "text": "Yes!"} | values
    sender, chat, text = given["sender"], given["chat"], given["text"]
    return Message(
        event_id=f"m-{next(NUMBERS)}", provider_id="p", at=NOON, sender=sender, chat=chat, text=text
    )


def test_a_message_finds_its_recipient_however_the_service_writes_the_number(owner: User) -> None:
    account = AccountFactory.create(owner=owner)
    anna = RecipientFactory.create(owner=owner, address="+60123456789")
    take(account, message(chat="60123456789:12@s.whatsapp.net"))
    row = Inbound.objects.get()
    assert (row.recipient, row.text, row.sender) == (anna, "Yes!", "60123456789@c.us")
    assert row.handled_at is not None


def test_a_message_in_a_group_belongs_to_the_group(owner: User) -> None:
    account = AccountFactory.create(owner=owner)
    RecipientFactory.create(owner=owner, address="+60123456789")
    choir = RecipientFactory.create(owner=owner, kind="group", address="120363000000000001@g.us")
    take(account, message(chat=choir.address))
    assert Inbound.objects.get().recipient == choir


def test_a_stranger_to_us_and_anothers_recipient_are_nobody(owner: User, stranger: User) -> None:
    account = AccountFactory.create(owner=owner)
    RecipientFactory.create(owner=stranger, address="+60123456789")
    take(account, message())
    take(account, message(chat="status@broadcast", sender="who?", text="\x00odd"))
    assert [row.recipient for row in Inbound.objects.all()] == [None, None]
    assert all(row.handled_at for row in Inbound.objects.all())


def test_one_message_that_cannot_be_handled_holds_up_no_other(
    owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = AccountFactory.create(owner=owner)
    store.store(account, [message(text="bad"), message(text="good")])

    handle = replies.handle

    def fussy(row: Inbound) -> None:
        if row.text == "bad":
            raise RuntimeError("cannot be handled")
        handle(row)

    with monkeypatch.context() as patch:
        patch.setattr(replies, "handle", fussy)
        replies.work(account.pk)
    assert {row.text: bool(row.handled_at) for row in Inbound.objects.all()} == {"bad": False, "good": True}
    replies.sweep()
    assert not Inbound.objects.filter(handled_at=None).exists()


@pytest.fixture
def committed(transactional_db: None) -> Account:
    return AccountFactory.create()


def test_two_tasks_that_know_one_part_each_find_the_message_delivered(committed: Account) -> None:
    run = RunTargetFactory.create(account=committed, run__owner=committed.owner).run
    albums = [
        RunTargetFactory.create(account=committed, run=run, sent=True, earlier_ids=[f"first-{n}"])
        for n in range(20)
    ]
    start = threading.Barrier(2)

    def task(part: int) -> None:
        try:
            start.wait(timeout=10)
            for each in albums:
                name = (each.provider_id, *(each.earlier_ids or ()))[part]
                take(committed, of_part(name, ReceiptState.DELIVERED, NOON))
        finally:
            database.close()

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(task, range(2)))
    assert RunTarget.objects.filter(delivered_at=NOON).count() == 20


def test_events_and_messages_are_handled_in_the_order_in_which_they_came(
    owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = AccountFactory.create(owner=owner)
    store.store(account, [message(text="1"), session(AccountState.WORKING), message(text="2")])
    order: list[str] = []
    handle = replies.handle

    def note(row: Inbound) -> None:
        order.append(row.text or row.kind)
        (handle if row.kind == Inbound.Kind.MESSAGE else handle_event)(row)

    monkeypatch.setattr(replies, "handle", note)
    monkeypatch.setattr(replies, "handle_event", note)
    replies.work(account.pk)
    assert order == ["1", "session", "2"]
    assert not Inbound.objects.filter(handled_at=None).exists()


def test_two_tasks_at_once_handle_each_message_once(
    committed: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.store(committed, [message(text=str(number)) for number in range(20)])
    handled: list[str] = []
    start = threading.Barrier(4)
    handle = replies.handle

    def note(row: Inbound) -> None:
        handled.append(row.text)
        handle(row)

    monkeypatch.setattr(replies, "handle", note)

    def task(_: int) -> None:
        try:
            start.wait(timeout=10)
            replies.work(committed.pk)
        finally:
            database.close()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(task, range(4)))
    assert sorted(handled, key=int) == [str(number) for number in range(20)]


# What reports say about the account


def slow_down(at: datetime | None = None) -> SlowDownAsked:
    return SlowDownAsked(
        event_id=f"slow-{next(NUMBERS)}", at=at or timezone.now(), reason="Too fast (130429)"
    )


@pytest.mark.django_db
def test_a_report_that_an_account_is_too_fast_slows_it_down(settings: Settings) -> None:
    account = AccountFactory.create()
    take(account, slow_down())
    account.refresh_from_db()
    assert account.slow_factor == settings.SLOW_DOWN_FACTOR
    assert (account.trouble_kind, account.trouble) == ("rate_limited", "Too fast (130429)")
    assert account.held_until is not None
    assert account.held_until > timezone.now()
    assert account.status == Account.Status.ACTIVE


@pytest.mark.django_db
def test_reports_alone_slow_an_account_down_only_so_far_and_never_make_it_faster() -> None:
    account, slow = AccountFactory.create(), AccountFactory.create(slow_factor=20)
    take(account, *(slow_down() for _ in range(20)))
    take(slow, slow_down())
    account.refresh_from_db()
    slow.refresh_from_db()
    assert (account.slow_factor, slow.slow_factor) == (SLOWEST, 20)


@pytest.mark.django_db
def test_an_old_report_slows_nothing_down() -> None:
    account = AccountFactory.create()
    take(account, slow_down(timezone.now() - timedelta(hours=1)))
    account.refresh_from_db()
    assert (account.slow_factor, account.trouble_kind, account.held_until) == (1, "", None)


@pytest.mark.django_db
def test_a_person_without_a_number_in_reports_is_heard_once_a_status_names_them(owner: User) -> None:
    account = AccountFactory.create(owner=owner, transport="cloud_api")
    anna = RecipientFactory.create(owner=owner, address="+4915112345678")
    target = RunTargetFactory.create(sent=True, account=account, recipient=anna, run__reminder__owner=owner)
    stop = Message(
        event_id="m-stop", provider_id="m-stop", sender="DE.77", chat="DE.77", text="STOP", at=timezone.now()
    )
    take(account, stop)
    anna.refresh_from_db()
    assert anna.opted_out_at is None  # nobody knows yet who that is
    take(account, replace(receipt(target, ReceiptState.DELIVERED), chat="DE.77"))
    anna.refresh_from_db()
    assert anna.opted_out_at is not None
