"""Replies from a service that must be asked, against a real homeserver."""

import pytest
from django.utils import timezone

from accounts.models import Account
from accounts.models.account import Channel
from activity.models import Inbound
from delivery.inbound import polling
from delivery.sessions import ask, connect
from tests.delivery.transports.harness import SECRET, port_without_server
from tests.delivery.transports.homeserver import Homeserver
from tests.delivery.transports.synapse import Synapse
from tests.factories import AccountFactory

pytestmark = [pytest.mark.django_db, pytest.mark.xdist_group("synapse")]


@pytest.fixture
def home(synapse: Synapse) -> Homeserver:
    return Homeserver(synapse)


@pytest.fixture
def friend(home: Homeserver, synapse: Synapse) -> Homeserver:
    friend = Homeserver(synapse)
    home.invite(friend)
    return friend


@pytest.fixture
def account(home: Homeserver, synapse: Synapse) -> Account:
    credentials = {"base_url": f"http://127.0.0.1:{synapse.port}", "user": home.user_id, "password": SECRET}
    return AccountFactory.create(channel=Channel.MATRIX, transport="matrix", credentials=credentials)


def words() -> list[str]:
    return list(Inbound.objects.order_by("at", "id").values_list("text", flat=True))


def test_replies_are_kept_once_and_polling_goes_on_where_it_was(
    account: Account, home: Homeserver, friend: Homeserver
) -> None:
    friend.say(home.address, "long ago")
    polling.poll_all()
    friend.say(home.address, "Yes!")
    account.refresh_from_db()
    polling.poll(account)
    polling.poll(account)  # from where it was before, as a second worker would
    polling.poll_all()

    assert words() == ["Yes!"]
    inbound = Inbound.objects.get()
    assert (inbound.account, inbound.sender, inbound.chat) == (account, friend.user_id, home.address)


def test_an_account_that_does_not_answer_keeps_none_from_being_asked(
    account: Account, home: Homeserver, friend: Homeserver
) -> None:
    with port_without_server() as port:
        broken = AccountFactory.create(
            channel=Channel.MATRIX,
            transport="matrix",
            credentials={"base_url": f"http://127.0.0.1:{port}", "access_token": "t"},
        )
        polling.poll_all()
        friend.say(home.address, "Still here")
        polling.poll_all()
        with pytest.raises(ask.NoAnswerError):
            polling.poll(broken)
    assert words() == ["Still here"]


def test_only_active_accounts_of_kinds_that_cannot_report_are_asked(account: Account) -> None:
    AccountFactory.create()  # of the sandbox, which reports
    Account.objects.filter(pk=account.pk).update(status=Account.Status.PAUSED)
    polling.poll_all()
    Account.objects.filter(pk=account.pk).update(status=Account.Status.ACTIVE, archived_at=timezone.now())
    polling.poll_all()
    assert not Account.objects.exclude(polled_at=None).exists()


def test_connecting_keeps_a_token_instead_of_the_password(account: Account) -> None:
    connect.connect(account, by=account.owner)
    account.refresh_from_db()
    assert account.credentials["access_token"]
    assert account.credentials["password"] == ""
