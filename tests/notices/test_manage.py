"""Addresses are added, confirmed, changed, tested and deleted by their person alone, and their secrets stay secret."""

import re
from datetime import timedelta
from random import Random

import pytest
from django.core.exceptions import PermissionDenied
from django.db import connection
from django.utils import timezone
from pytest_django import Settings

from accounts.models import User
from notices import deliver, manage
from notices.manage import BadAddressError
from notices.models import Notice, NoticeAddress
from tests.factories import NoticeAddressFactory, NoticeFactory, OperatorFactory
from tests.notices.services import Mailbox

pytestmark = pytest.mark.django_db

RNG = Random(7)
SECRET = "a-very-secret-topic"


def add(owner: User, address: str) -> NoticeAddress:
    return manage.add(owner, address, kinds=["paused", "failed"], rhythm="at_once")


def code_in(mails: Mailbox) -> str:
    found = re.search(r"\d{6}", str(mails.mails[-1]["Subject"]))
    assert found is not None
    return found[0]


def test_a_service_can_be_used_at_once_and_its_secret_is_encrypted(owner: User) -> None:
    made = add(owner, f" ntfys://ntfy.example.com/{SECRET} ")
    assert made.confirmed_at is not None
    assert (made.shown, made.kinds) == ("ntfy at ntfy.example.com", ["paused", "failed"])
    assert NoticeAddress.objects.get().address["url"] == f"ntfys://ntfy.example.com/{SECRET}"
    with connection.cursor() as cursor:
        cursor.execute("SELECT notices_noticeaddress::text FROM notices_noticeaddress")
        assert SECRET not in cursor.fetchone()[0]


def test_of_a_service_with_one_place_nothing_but_its_name_is_shown(owner: User) -> None:
    made = add(owner, "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/")
    assert made.shown == "Slack"


def test_a_mailbox_is_used_once_its_code_is_typed(owner: User, mails: Mailbox) -> None:
    made = add(owner, "ann@example.com")
    assert (made.shown, made.confirmed_at) == ("a…@example.com", None)
    assert deliver.serve(made.pk, rng=RNG)
    assert not manage.confirm(made, "000000x", by=owner)
    code = code_in(mails)
    assert manage.confirm(made, f"{code[:3]} {code[3:]}", by=owner)
    assert NoticeAddress.objects.get().confirmed_at is not None


def test_a_code_is_for_five_tries_and_half_an_hour(owner: User, mails: Mailbox) -> None:
    made = add(owner, "ann@example.com")
    deliver.serve(made.pk, rng=RNG)
    code = code_in(mails)
    for _ in range(manage.CODE_TRIES):
        assert not manage.confirm(made, "wrong", by=owner)
    assert not manage.confirm(made, code, by=owner)
    manage.send_code(made, by=owner)
    deliver.serve(made.pk, rng=RNG)
    NoticeAddress.objects.update(code_at=timezone.now() - timedelta(minutes=31))
    assert not manage.confirm(made, code_in(mails), by=owner)


def test_nobody_gets_more_than_a_few_codes_a_day_however_often_they_are_added(
    owner: User, mails: Mailbox
) -> None:
    for _ in range(manage.CODES_PER_DAY):
        add(owner, "stranger@example.com").delete()
    with pytest.raises(BadAddressError, match="codes were sent today"):
        add(owner, "stranger@example.com")
    assert not NoticeAddress.objects.exists()


def test_without_a_mail_server_a_mailbox_is_refused(owner: User, settings: Settings) -> None:
    settings.EMAIL_HOST = ""
    with pytest.raises(BadAddressError, match="no mail server"):
        add(owner, "ann@example.com")


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("syslog://", "neither an e-mail address nor one of these services: Slack, Telegram"),
        ("mailto://user:pass@example.com", "neither an e-mail address"),
        ("ann@localhost:22/x", "neither an e-mail address"),
        ("slack://not-a-token", "Slack: the address cannot be read"),
        (f"json://example.com/{'x' * 1000}", "neither an e-mail address"),
    ],
)
def test_what_cannot_be_used_is_refused_with_a_sentence(owner: User, address: str, why: str) -> None:
    with pytest.raises(BadAddressError, match=re.escape(why)):
        add(owner, address)
    assert not NoticeAddress.objects.exists()


def test_an_address_is_in_the_list_once_and_the_list_has_an_end(owner: User) -> None:
    add(owner, "json://example.com/a")
    with pytest.raises(BadAddressError, match="in your list already"):
        add(owner, "json://example.com/a")
    NoticeAddressFactory.create_batch(manage.MOST - 1, person=owner)
    with pytest.raises(BadAddressError, match="There are 10 addresses already"):
        add(owner, "json://example.com/b")


def test_what_is_not_wanted_any_more_is_not_sent(owner: User) -> None:
    address = NoticeAddressFactory.create(person=owner)
    NoticeFactory.create(address=address, kind="success")
    kept = NoticeFactory.create(address=address, kind="failed")
    manage.change(address, kinds=["failed"], rhythm="daily", by=owner)
    [left] = Notice.objects.all()
    assert left == kept
    assert left.due_at > timezone.now()


def test_a_test_is_refused_where_it_would_not_arrive_or_is_under_way(owner: User) -> None:
    address = NoticeAddressFactory.create(person=owner, retry_at=timezone.now() + timedelta(hours=1))
    manage.test(address, by=owner)
    assert NoticeAddress.objects.filter(pk=address.pk, retry_at__lte=timezone.now()).exists(), "not later"
    for refused in (
        address,
        NoticeAddressFactory.create(person=owner, unconfirmed=True),
        NoticeAddressFactory.create(person=owner, switched_off_at=timezone.now()),
    ):
        with pytest.raises(BadAddressError):
            manage.test(refused, by=owner)


def test_nobody_else_changes_an_address(owner: User, mate: User) -> None:
    address = NoticeAddressFactory.create(person=owner)
    for person in (mate, OperatorFactory.create()):
        with pytest.raises(PermissionDenied):
            manage.delete(address, by=person)
        with pytest.raises(PermissionDenied):
            manage.test(address, by=person)
