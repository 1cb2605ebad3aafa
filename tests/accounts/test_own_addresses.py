"""Addresses to which a person may send tests: only those that a code proved to be their own."""

from datetime import timedelta
from threading import Barrier, Thread

import pytest
import time_machine
from django.db import connection
from django.utils import timezone
from pytest_django import Settings

from accounts import own_addresses
from accounts.models import Account, OwnAddress, TestMessage, User
from accounts.own_addresses import NotAllowedError, TakenOverError
from tests.factories import AccountFactory, OperatorFactory, RecipientFactory

pytestmark = pytest.mark.django_db
ADDRESS = "+60123456789"


@pytest.fixture
def account(owner: User) -> Account:
    return AccountFactory.create(owner=owner, own_address="")


def code_for(account: Account, person: User, address: str = ADDRESS) -> str:
    """Ask for a code and make it, as the worker does right before it leaves."""
    return own_addresses.issue(own_addresses.reserve_code(account, person, address))


def confirmed(account: Account, person: User, address: str = ADDRESS) -> bool:
    return own_addresses.is_confirmed(account.pk, person.pk, address)


def test_a_code_confirms_an_address_for_one_person_and_one_account(
    account: Account, owner: User, mate: User
) -> None:
    own_addresses.confirm(account, owner, ADDRESS, code_for(account, owner))
    assert confirmed(account, owner)
    assert not confirmed(account, mate)
    assert not confirmed(AccountFactory.create(owner=owner), owner)
    account.refresh_from_db()
    assert account.own_address == ADDRESS
    assert own_addresses.confirmed_of([account], owner) == {account.pk: ADDRESS}


def test_a_code_is_taken_with_spaces_and_only_once(account: Account, owner: User) -> None:
    code = code_for(account, owner)
    own_addresses.confirm(account, owner, ADDRESS, f" {code[:3]} {code[3:]} ")
    with pytest.raises(NotAllowedError, match="expired"):
        own_addresses.confirm(account, owner, ADDRESS, code)


def test_only_the_hash_of_a_code_is_kept(account: Account, owner: User) -> None:
    code = code_for(account, owner)
    kept = OwnAddress.objects.values_list().get()
    assert not [value for value in kept if code in str(value)]


def test_a_code_of_somebody_else_confirms_nothing(account: Account, owner: User, mate: User) -> None:
    code = code_for(account, owner)
    with pytest.raises(NotAllowedError):
        own_addresses.confirm(account, mate, ADDRESS, code)
    assert not confirmed(account, mate)


def test_a_code_is_tried_five_times(account: Account, owner: User) -> None:
    code = code_for(account, owner)
    wrong = f"{(int(code) + 1) % 10**6:06}"
    for left in (4, 3, 2, 1):
        with pytest.raises(NotAllowedError, match=f"Tries left: {left}"):
            own_addresses.confirm(account, owner, ADDRESS, wrong)
    with pytest.raises(NotAllowedError, match="Ask for a new one"):
        own_addresses.confirm(account, owner, ADDRESS, wrong)
    with pytest.raises(NotAllowedError, match="tried too often"):
        own_addresses.confirm(account, owner, ADDRESS, code)
    assert not confirmed(account, owner)


def test_a_code_ends_after_15_minutes_and_with_the_next_one(account: Account, owner: User) -> None:
    first = code_for(account, owner)
    second = code_for(account, owner)
    if first != second:
        with pytest.raises(NotAllowedError):
            own_addresses.confirm(account, owner, ADDRESS, first)
    with (
        time_machine.travel(timezone.now() + timedelta(minutes=16), tick=False),
        pytest.raises(NotAllowedError, match="expired"),
    ):
        own_addresses.confirm(account, owner, ADDRESS, second)


@pytest.mark.parametrize("code", ["", "0", "١٢٣٤٥٦", "x" * 10_000])
def test_what_is_no_code_is_a_wrong_one(account: Account, owner: User, code: str) -> None:
    code_for(account, owner)
    with pytest.raises(NotAllowedError, match="wrong"):
        own_addresses.confirm(account, owner, ADDRESS, code)


def test_a_person_asks_for_three_codes_an_hour_from_an_account(account: Account, owner: User) -> None:
    for number in range(3):
        own_addresses.reserve_code(account, owner, f"+6012345678{number}")
    with pytest.raises(NotAllowedError, match="3 codes in an hour"):
        own_addresses.reserve_code(account, owner, "+60123456785")
    with time_machine.travel(timezone.now() + timedelta(minutes=61), tick=False):
        own_addresses.reserve_code(account, owner, "+60123456785")


def test_a_person_asks_for_ten_codes_a_day_from_all_accounts(owner: User) -> None:
    for number in range(10):
        own_addresses.reserve_code(AccountFactory.create(owner=owner), owner, f"+6012345{number:04}")
    with pytest.raises(NotAllowedError, match="10 codes in 24 hours"):
        own_addresses.reserve_code(AccountFactory.create(owner=owner), owner, ADDRESS)


def test_an_address_gets_three_codes_a_day_whoever_asks(account: Account) -> None:
    people = OperatorFactory.create_batch(4)
    for person in people[:3]:
        own_addresses.reserve_code(AccountFactory.create(owner=person), person, ADDRESS)
    with pytest.raises(NotAllowedError, match="got 3 codes"):
        own_addresses.reserve_code(AccountFactory.create(owner=people[3]), people[3], ADDRESS)


def test_all_together_ask_for_so_many_codes_an_hour(
    account: Account, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_addresses, "CODES_IN_ALL", 1)
    stranger = OperatorFactory.create()
    own_addresses.reserve_code(AccountFactory.create(owner=stranger), stranger, "+60123456780")
    with pytest.raises(NotAllowedError, match="in this installation"):
        own_addresses.reserve_code(account, owner, ADDRESS)


def test_a_test_needs_a_confirmed_address_and_a_place_under_the_cap(
    account: Account, owner: User, mate: User, settings: Settings
) -> None:
    settings.TEST_SENDS_PER_DAY = 2
    with pytest.raises(NotAllowedError, match="not confirmed"):
        own_addresses.reserve_test(account, owner, ADDRESS)
    for person in (owner, mate):
        own_addresses.confirm(account, person, ADDRESS, code_for(account, person))
    for _ in range(2):
        own_addresses.reserve_test(account, owner, ADDRESS)
    with pytest.raises(NotAllowedError, match="2 tests per day"):
        own_addresses.reserve_test(account, owner, ADDRESS)
    own_addresses.reserve_test(account, mate, ADDRESS)  # has a cap of their own


@pytest.mark.parametrize(
    "state", [{"opted_out": True}, {"blocked": True}, {"opted_out": True, "archived": True}]
)
def test_who_opted_out_or_is_blocked_gets_neither_code_nor_test(
    account: Account, owner: User, state: dict[str, bool]
) -> None:
    own_addresses.confirm(account, owner, ADDRESS, code_for(account, owner))
    RecipientFactory.create(owner=owner, address=ADDRESS, **state)
    for reserve in (own_addresses.reserve_code, own_addresses.reserve_test):
        with pytest.raises(NotAllowedError, match="nothing is sent there"):
            reserve(account, owner, ADDRESS)


@pytest.mark.parametrize(
    "spelling",
    [
        "+60 12-345 6789",
        "60123456789@c.us",
        "0060123456789",
        "https://wa.me/60123456789",
        "60123456789:3@s.whatsapp.net",
    ],
)
def test_every_spelling_of_an_address_is_the_same(account: Account, owner: User, spelling: str) -> None:
    RecipientFactory.create(owner=owner, address=ADDRESS, opted_out=True)
    assert own_addresses.why_not(account, own_addresses.read(account, spelling))


def test_a_local_number_belongs_to_the_owner_s_country(owner: User) -> None:
    owner.region = "MY"
    owner.save()
    assert own_addresses.read(AccountFactory.create(owner=owner), "012-345 6789") == ADDRESS


def test_a_group_is_nobody_s_own_address(account: Account) -> None:
    with pytest.raises(NotAllowedError, match="not a group"):
        own_addresses.read(account, "120363025555555555@g.us")


def test_a_message_begins_once(account: Account, owner: User) -> None:
    message = own_addresses.reserve_code(account, owner, ADDRESS)
    assert [own_addresses.begin(message, fence=account.fence) for _ in range(2)] == [True, False]


def test_a_message_does_not_begin_for_a_worker_that_lost_the_account(account: Account, owner: User) -> None:
    message = own_addresses.reserve_code(account, owner, ADDRESS)
    stale = account.fence
    Account.objects.filter(pk=account.pk).update(fence=stale + 1)
    with pytest.raises(TakenOverError):
        own_addresses.begin(message, fence=stale)
    assert own_addresses.begin(message, fence=stale + 1)


def test_a_code_says_who_asked_and_nothing_that_they_could_choose(owner: User) -> None:
    owner.username, owner.first_name = "a" * 150, "Buy now https://spam.example"
    said = own_addresses.text_of("123456", owner)
    assert said.startswith("123456 is your Paceline code.")
    assert "a" * 40 in said
    assert "spam.example" not in said
    assert len(said) < 300


@pytest.mark.django_db(transaction=True)
def test_two_at_once_do_not_both_take_the_last_place(settings: Settings) -> None:
    settings.TEST_SENDS_PER_DAY = 1
    person = OperatorFactory.create()
    account = AccountFactory.create(owner=person)
    OwnAddress.objects.create(account=account, person=person, address=ADDRESS, confirmed_at=timezone.now())
    start, refused = Barrier(8), []

    def ask() -> None:
        start.wait()
        try:
            own_addresses.reserve_test(account, person, ADDRESS)
        except NotAllowedError as error:
            refused.append(error)
        finally:
            connection.close()

    threads = [Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (TestMessage.objects.count(), len(refused)) == (1, 7)
