"""The demo operator."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from accounts.models import Account, Recipient, User
from delivery.models import RunTarget
from reminders.fire import fire
from reminders.models import Reminder
from sandbox.groups import group

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis")]


def make_demo() -> str:
    out = StringIO()
    call_command("demo", stdout=out)
    return out.getvalue()


@pytest.fixture
def debug(settings: Settings) -> None:
    settings.DEBUG = True


@pytest.mark.usefixtures("debug")
def test_the_demo_can_log_in_and_fire(client: object) -> None:
    assert make_demo() == "Log in as demo with the password paceline-demo.\n"
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


def test_without_debug_it_is_refused_since_its_password_is_known(settings: Settings) -> None:
    settings.DEBUG = False
    with pytest.raises(CommandError, match="DEBUG=true"):
        make_demo()
    assert not User.objects.exists()
