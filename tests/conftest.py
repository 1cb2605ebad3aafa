"""The people of every permission test, and a Redis database of this process's own."""

from collections.abc import Iterator
from copy import deepcopy
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.db import connection
from django.test import TransactionTestCase, override_settings
from pytest_django import DjangoDbBlocker, Settings
from redis import Redis

from accounts.models import User
from config.redis.address import redis_address
from config.redis.client import client
from delivery.engine.loop import hang_up
from tests import emptying
from tests.browser.chromium import HOW_TO_GET_IT, MISSING
from tests.factories import OperatorFactory, StaffFactory, TeamMateFactory
from tests.redis_database import free_database, with_database
from tests.template_database import template_database

END_OTHERS = """
    SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say once how to get the browser tests, where they were skipped."""
    if any(MISSING in str(report.longrepr) for report in terminalreporter.stats.get("skipped", [])):
        terminalreporter.write_line(HOW_TO_GET_IT)


@pytest.fixture
def owner(db: None) -> User:
    """The operator to whom things belong."""
    return OperatorFactory.create(username="owner")


@pytest.fixture
def mate(owner: User) -> User:
    """Does everything with what is the owner's."""
    return TeamMateFactory.create(owner=owner, mate__username="mate", manage=True).mate


@pytest.fixture
def sender(owner: User) -> User:
    """Schedules and steers what is the owner's, and does not change accounts."""
    return TeamMateFactory.create(owner=owner, mate__username="sender", send=True).mate


@pytest.fixture
def writer(owner: User) -> User:
    """Writes drafts of the owner, and sends none."""
    return TeamMateFactory.create(owner=owner, mate__username="writer", write=True).mate


@pytest.fixture
def reader(owner: User) -> User:
    """Sees what is the owner's, and touches none of it."""
    return TeamMateFactory.create(owner=owner, mate__username="reader").mate


@pytest.fixture
def stranger(db: None) -> User:
    """An operator who has nothing to do with the owner."""
    return OperatorFactory.create(username="stranger")


@pytest.fixture
def staff(db: None) -> User:
    """Sees and touches everything, without being a superuser."""
    return StaffFactory.create(username="staff")


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings: None) -> None:
    """Let each process copy a migrated database instead of migrating its own."""
    url, locks = django_settings.DATABASE_URL, django_settings.VAR / "tests"
    template = template_database(url, root=django_settings.BASE_DIR, locks=locks)
    connection.settings_dict["TEST"]["TEMPLATE"] = template


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """A database with connections cannot be dropped: the engine's loop keeps its own, a late thread may too."""
    with django_db_blocker.unblock(), connection.cursor() as cursor:
        # Tests with several connections empty all tables at their end; `tests/audit` tries the trigger itself.
        cursor.execute("DROP TRIGGER IF EXISTS never_emptied ON audit_entry")
        cursor.execute("DROP TRIGGER IF EXISTS never_emptied ON audit_personalvalues")
        emptying.prepare()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_teardown", emptying.empty)
        yield
    hang_up()
    with django_db_blocker.unblock(), connection.cursor() as cursor:
        cursor.execute(END_OTHERS)


@pytest.fixture(scope="session", autouse=True)
def redis_url() -> Iterator[str]:
    """Points the settings at a Redis database that only this process uses, for all tests."""
    with free_database(django_settings.VAR / "tests") as number:
        url = with_database(django_settings.REDIS_URL, number)
        layers: dict[str, Any] = deepcopy(django_settings.CHANNEL_LAYERS)
        layers["default"]["CONFIG"]["hosts"][0]["address"] = url
        with override_settings(
            REDIS_URL=url, CELERY_BROKER_URL=redis_address(url).broker, CHANNEL_LAYERS=layers
        ):
            client.cache_clear()
            yield url


@pytest.fixture(scope="session", autouse=True)
def folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Media of tests do not go among real ones; static files need not be collected, but need a folder."""
    media, static = tmp_path_factory.mktemp("media"), tmp_path_factory.mktemp("static")
    with override_settings(MEDIA_ROOT=media, STATIC_ROOT=static):
        yield


@pytest.fixture
def traveling(settings: Settings) -> None:
    """Let a test move the clock of this process alone: the servers' clocks do not move."""
    settings.CLOCK_TOLERANCE_SECONDS = timedelta(days=36_500).total_seconds()


@pytest.fixture
def redis(redis_url: str) -> Iterator[Redis]:
    """The connection of the code under test, to a database that is empty before and after."""
    client().flushdb()
    yield client()
    client().flushdb()
