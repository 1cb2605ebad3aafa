"""Connecting, pairing, looking and logging out, against the real sandbox."""

from uuid import uuid4

import pytest
from django.core.exceptions import PermissionDenied
from django.utils import timezone
from pytest_django import Settings
from redis import Redis

from accounts.models import Account, User
from delivery.engine.loop import NOT_THERE, refused
from delivery.sessions import ask, connect
from delivery.transports.base import AccountState
from sandbox.process import SandboxProcess
from tests.factories import AccountFactory, RunFactory


@pytest.fixture
def account(owner: User, gateway: SandboxProcess, redis: Redis) -> Account:
    credentials = {"base_url": gateway.url, "account": f"pair-{uuid4().hex}", "token": "t", "pairing": "yes"}
    return AccountFactory.create(owner=owner, unpaired=True, credentials=credentials)


def name(account: Account) -> str:
    return account.credentials["account"]


def test_pairing_from_the_first_code_to_a_connected_account(
    account: Account, owner: User, gateway: SandboxProcess
) -> None:
    assert connect.connect(account, by=owner).status == "pairing"
    code = connect.pairing(account, by=owner)
    assert code is not None
    assert code.code.startswith("sandbox:")
    assert 0 < code.expires_in <= 60
    assert len(connect.pairing_code(account, "+4915112345678", by=owner)) == 9

    gateway.behave(name(account), state="WORKING")
    found = connect.look(account)
    looked, state = found.account, found.state
    assert (looked.status, state) == ("active", AccountState.WORKING)
    assert account.syncs.count() == 1  # a new account brings its groups along
    with pytest.raises(ask.NoAnswerError, match="nothing to scan"):
        connect.pairing(account, by=owner)


def test_groups_are_read_by_itself_once_and_not_at_every_return(
    account: Account, owner: User, gateway: SandboxProcess
) -> None:
    account.credentials = {**account.credentials, "pairing": "no"}
    account.save()
    connect.connect(account, by=owner)
    account.syncs.update(finished_at=timezone.now())
    gateway.behave(name(account), not_connected=True)
    assert connect.look(account).account.status == "offline"
    gateway.behave(name(account), not_connected=False)
    assert connect.look(account).account.status == "active"
    assert account.syncs.count() == 1


def test_codes_that_ran_out_leave_the_account_unpaired(
    account: Account, owner: User, gateway: SandboxProcess
) -> None:
    connect.connect(account, by=owner)
    gateway.behave(name(account), state="STOPPED")
    assert connect.look(account).account.status == "unpaired"


def test_an_account_that_needs_no_pairing_is_active_at_once(
    account: Account, owner: User, gateway: SandboxProcess
) -> None:
    account.credentials = {**account.credentials, "pairing": "no"}
    account.save()
    assert connect.connect(account, by=owner).status == "active"


def test_logging_out_pauses_its_runs(account: Account, owner: User, gateway: SandboxProcess) -> None:
    gateway.behave(name(account), token="t")
    connect.connect(account, by=owner)
    run = RunFactory.create(reminder__owner=owner)
    run.run_accounts.create(account=account)
    out = connect.log_out(account, by=owner)
    run.refresh_from_db()
    assert (out.status, out.status_by, run.status) == ("unpaired", owner, "paused")
    assert connect.look(account).state is AccountState.STOPPED


def test_a_flag_is_lifted_when_a_person_reconnects_and_never_by_looking(
    account: Account, owner: User, gateway: SandboxProcess
) -> None:
    gateway.behave(name(account), token="t")
    Account.objects.filter(pk=account.pk).update(status="active")
    Account.objects.filter(pk=account.pk).update(status="flagged")
    account.refresh_from_db()
    assert connect.look(account).account.status == "flagged"
    assert connect.connect(account, by=owner).status == "active"


def test_only_those_who_may_touch_an_account_pair_it(
    account: Account, mate: User, reader: User, stranger: User
) -> None:
    for person in (reader, stranger):
        with pytest.raises(PermissionDenied):
            connect.connect(account, by=person)
        with pytest.raises(PermissionDenied):
            connect.pairing(account, by=person)
        with pytest.raises(PermissionDenied):
            connect.pairing_code(account, "+491", by=person)
        with pytest.raises(PermissionDenied):
            connect.log_out(account, by=person)
    assert connect.connect(account, by=mate).status == "pairing"


def test_a_service_that_is_away_is_said_in_a_sentence(account: Account, owner: User) -> None:
    account.credentials = {**account.credentials, "base_url": "http://127.0.0.1:9"}
    account.save()
    with pytest.raises(ask.NoAnswerError, match=r"connection refused, 127\.0\.0\.1:9"):
        connect.connect(account, by=owner)


def test_credentials_that_miss_something_are_named(account: Account, owner: User) -> None:
    account.credentials = {"account": "a"}
    account.save()
    with pytest.raises(ask.NoAnswerError, match="Token is missing"):
        connect.connect(account, by=owner)
    assert not ask.capabilities_of(account).webhooks


def test_services_are_told_where_to_report_once_and_again_when_that_changes(
    account: Account, settings: Settings, gateway: SandboxProcess
) -> None:
    gateway.behave(name(account), token="t")
    Account.objects.filter(pk=account.pk).update(status="active")
    settings.PUBLIC_URL = ""
    connect.register_webhooks()
    account.refresh_from_db()
    assert account.reports_tried_at is None

    settings.PUBLIC_URL = "http://127.0.0.1:9"
    connect.register_webhooks()
    account.refresh_from_db()
    tried = account.reports_tried_at
    assert (account.reports_to, tried is None) == ("http://127.0.0.1:9", False)

    connect.register_webhooks()
    account.refresh_from_db()
    assert account.reports_tried_at == tried

    settings.PUBLIC_URL = "http://127.0.0.1:10"
    Account.objects.update(reports_tried_at=None)
    connect.register_webhooks()
    account.refresh_from_db()
    assert account.reports_to == "http://127.0.0.1:10"


def test_a_service_that_is_away_is_asked_again_later_and_not_at_once(
    account: Account, settings: Settings
) -> None:
    settings.PUBLIC_URL = "http://127.0.0.1:9"
    account.credentials = {**account.credentials, "base_url": "http://127.0.0.1:9"}
    account.save()
    Account.objects.filter(pk=account.pk).update(status="active")
    connect.register_webhooks()
    account.refresh_from_db()
    tried = account.reports_tried_at
    assert (account.reports_to, tried is None) == ("", False)
    connect.register_webhooks()
    account.refresh_from_db()
    assert account.reports_tried_at == tried


def test_a_number_is_checked_before_the_first_message(account: Account, gateway: SandboxProcess) -> None:
    gateway.behave(name(account), token="t", unknown=["+60123456789"])
    assert ask.ask(account, lambda line: refused(line, "+60123456789")) is NOT_THERE
    assert ask.ask(account, lambda line: refused(line, "+60120000000")) is None
    assert ask.ask(account, lambda line: refused(line, "120363000000000001@g.us")) is None


def test_a_check_that_is_not_answered_stops_nothing(account: Account, gateway: SandboxProcess) -> None:
    gateway.behave(name(account), token="another")
    assert ask.ask(account, lambda line: refused(line, "+60123456789")) is None


def test_why_it_could_not_be_reached_stays_until_it_can(account: Account, owner: User) -> None:
    good, bad = account.credentials, {**account.credentials, "base_url": "http://127.0.0.1:9"}
    account.credentials = bad
    account.save()
    looked = connect.look(account)
    assert looked.sentence.endswith("(connection refused, 127.0.0.1:9.)")
    account.refresh_from_db()
    assert (account.trouble_kind, account.trouble) == ("unreachable", "connection refused, 127.0.0.1:9")
    since = account.trouble_since
    with pytest.raises(ask.NoAnswerError):
        connect.connect(account, by=owner)
    account.refresh_from_db()
    assert account.trouble_since == since
    account.credentials = good
    account.save()
    connect.connect(account, by=owner)
    account.refresh_from_db()
    assert (account.trouble_kind, account.trouble, account.trouble_since) == ("", "", None)


def test_what_the_engine_met_is_left_alone(account: Account) -> None:
    met = {"trouble_kind": "rate_limited", "trouble": "the gateway answered 429", "trouble_count": 2}
    Account.objects.filter(pk=account.pk).update(**met, status="active")
    account.refresh_from_db()
    connect.look(account)
    account.refresh_from_db()
    assert (account.trouble_kind, account.trouble_count) == ("rate_limited", 2)
