"""Passes that ask many services at once: silent services of one owner take one thread, and delay nobody else."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone
from pytest_django import Settings

from accounts.models import Account, User
from activity.models import Inbound
from config.long_tasks import passes
from delivery.inbound import hidden_addresses, polling
from delivery.sessions import connect, probe
from tests.delivery.service import serving
from tests.factories import AccountFactory
from tests.silent_server import SilentServer

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def one_place() -> Iterator[None]:
    passes.cache_clear()
    yield
    passes.cache_clear()


@pytest.fixture
def silent(settings: Settings) -> Iterator[SilentServer]:
    settings.ANSWER_TIMEOUT_SECONDS = 60  # nothing ends by itself
    with SilentServer() as server:
        yield server


@contextmanager
def under_way(work: Callable[[], None], silent: SilentServer, asked: int) -> Iterator[None]:
    """The pass waits for so many silent services, until the block ends."""

    def done_and_closed() -> None:
        try:
            work()
        finally:
            connection.close()  # as a worker does after each task

    thread = threading.Thread(target=done_and_closed)
    thread.start()
    try:
        assert silent.wait_for(asked, seconds=60)
        yield
    finally:
        silent.let_go()
        thread.join(60)


def account_at(url: str, owner: User, **more: object) -> Account:
    credentials = {"base_url": url, "api_key": "k", "session": f"of-{Account.objects.count()}"}
    return AccountFactory.create(owner=owner, transport="waha", credentials=credentials, **more)


def offline(url: str, owner: User, *, since: int) -> Account:
    before = timezone.now() - timedelta(seconds=since)
    trouble = {"trouble_kind": "unreachable", "trouble": "no answer", "held_until": before}
    return account_at(url, owner, status=Account.Status.OFFLINE, **trouble)


def becomes_true(holds: Callable[[], bool]) -> bool:
    waited = threading.Event()
    return any(holds() or waited.wait(0.05) for _ in range(1200))


def test_an_offline_account_comes_back_beside_many_silent_ones_of_another_owner(
    owner: User, stranger: User, silent: SilentServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "MOST_AT_ONCE", 4)
    for _ in range(10):
        offline(silent.url, owner, since=100)
    with serving() as service:
        other = offline(service.url, stranger, since=1)
        name = other.credentials["session"]
        service.answers["GET", f"/api/sessions/{name}"] = 200, {"name": name, "status": "WORKING"}
        with under_way(probe.probe_due, silent, 3):
            assert becomes_true(lambda: Account.objects.get(pk=other.pk).status == Account.Status.ACTIVE)
            probe.probe_due()  # returns at once, and takes no second thread
            assert silent.held == 3


def test_the_person_behind_a_hidden_address_is_found_beside_silent_services_of_another_owner(
    owner: User, stranger: User, silent: SilentServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hidden_addresses, "MOST_ACCOUNTS", 4)
    for _ in range(6):
        wrote(account_at(silent.url, owner))
    with serving() as service:
        other = account_at(service.url, stranger)
        name = other.credentials["session"]
        service.answers["GET", f"/api/{name}/lids/77%40lid"] = 200, {"lid": LID, "pn": "60123456789@c.us"}
        wrote(other)
        with under_way(hidden_addresses.ask_all, silent, 3):
            assert becomes_true(other.aliases.exists)
            hidden_addresses.ask_all()
            assert silent.held == 3


LID = "77@lid"


def wrote(account: Account) -> None:
    message = {"kind": Inbound.Kind.MESSAGE, "sender": LID, "chat": LID, "text": "Hi", "waits_for": LID}
    Inbound.objects.create(account=account, event_id="m1", at=timezone.now(), **message)


def test_no_second_pass_of_polls_begins_while_one_waits(owner: User, silent: SilentServer) -> None:
    credentials = {"base_url": silent.url, "access_token": "t"}
    for _ in range(2):
        AccountFactory.create(owner=owner, channel="matrix", transport="matrix", credentials=credentials)
    with under_way(polling.poll_all, silent, 2):
        polling.poll_all()
        assert silent.held == 2


def test_few_passes_of_all_kinds_are_under_way_at_once(settings: Settings) -> None:
    settings.WORKER_THREADS = 64
    assert [passes().take(kind) is None for kind in ("poll", "probe", "webhooks")] == [True, True, False]
    for kind in ("poll", "probe"):
        passes().give_back(kind)


def test_webhooks_are_registered_in_one_pass_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connect, "_register_webhooks", connect.register_webhooks)
    connect.register_webhooks()  # the second one, inside the first, does nothing
