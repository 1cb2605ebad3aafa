"""The demo operator."""

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from accounts.models import Account, Recipient, User
from delivery.models import RunTarget
from reminders.fire import fire
from reminders.models import Reminder
from sandbox.groups import group
from tests.factories import AccountFactory

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis")]


def make_demo(**options: str | bool) -> str:
    out = StringIO()
    call_command("demo", stdout=out, **options)
    return out.getvalue()


def addresses() -> set[str]:
    return {account.credentials["base_url"] for account in Account.objects.all()}


@pytest.fixture
def debug(settings: Settings) -> None:
    settings.DEBUG = True


@pytest.mark.usefixtures("debug")
def test_the_demo_can_log_in_and_fire(client: object) -> None:
    assert make_demo() == "Log in as demo with the password paceline-demo.\n"
    assert json.loads(make_demo(json=True)) == {"username": "demo", "password": "paceline-demo"}
    assert User.objects.get(username="demo").check_password("paceline-demo")
    run = fire(Reminder.objects.get())
    assert run.total == run.pending == 90
    assert {account.targets.filter(run=run).count() for account in Account.objects.all()} == {30}


@pytest.mark.usefixtures("debug")
def test_every_group_stays_with_the_account_that_reaches_it() -> None:
    make_demo()
    run = fire(Reminder.objects.get())
    for target in RunTarget.objects.filter(run=run).select_related("recipient"):
        assert target.account_id == target.recipient.account_id


@pytest.mark.usefixtures("debug")
def test_the_groups_are_those_that_the_sandbox_has() -> None:
    make_demo()
    names = Recipient.objects.filter(account__name="Office phone").values_list("address", "name")
    assert set(names) == {(each.id, each.name) for each in (group("office-phone", n) for n in range(30))}


@pytest.mark.usefixtures("debug")
def test_made_twice_it_is_there_once() -> None:
    make_demo()
    make_demo()
    assert User.objects.filter(username="demo").count() == 1
    assert Account.objects.count() == 3


@pytest.mark.usefixtures("debug")
def test_the_accounts_follow_the_sandbox_to_another_port() -> None:
    make_demo(sandbox="http://127.0.0.1:8081")
    by_hand = {"base_url": "http://127.0.0.1:8081", "account": "choir", "token": "secret"}
    AccountFactory.create(transport="sandbox", credentials=by_hand)
    make_demo(sandbox="http://127.0.0.1:8082")
    assert addresses() == {"http://127.0.0.1:8082"}


@pytest.mark.usefixtures("debug")
def test_an_account_that_leads_elsewhere_stays_there() -> None:
    make_demo(sandbox="http://127.0.0.1:8081")
    elsewhere = {"base_url": "http://127.0.0.1:9000", "account": "choir", "token": "secret"}
    AccountFactory.create(transport="sandbox", credentials=elsewhere)
    make_demo(sandbox="http://127.0.0.1:8082")
    assert addresses() == {"http://127.0.0.1:8082", "http://127.0.0.1:9000"}


@pytest.mark.usefixtures("debug")
def test_without_an_address_no_account_is_led_away_from_a_running_sandbox(settings: Settings) -> None:
    make_demo(sandbox="http://127.0.0.1:8082")
    settings.SANDBOX_URL = "http://127.0.0.1:8081"
    make_demo()
    assert addresses() == {"http://127.0.0.1:8082"}


def test_without_debug_it_is_refused_since_its_password_is_known(settings: Settings) -> None:
    settings.DEBUG = False
    with pytest.raises(CommandError, match="DEBUG=true"):
        make_demo()
    assert not User.objects.exists()
