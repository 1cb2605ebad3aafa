"""Tests that commit leave nothing behind, and take away nothing that migrations made."""

import pytest
from django.contrib.auth.models import Permission
from django.contrib.contenttypes.models import ContentType
from django.db import connection
from django.test import TransactionTestCase
from django_celery_beat.models import PeriodicTask

from accounts.models import Account, User
from delivery.models import Run
from tests import emptying
from tests.factories import AccountFactory, RunFactory

pytestmark = pytest.mark.django_db(transaction=True)


def empty() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pristine.empty()")


def test_all_rows_that_a_test_committed_are_deleted() -> None:
    AccountFactory.create()
    RunFactory.create()

    empty()

    assert not User.objects.exists()
    assert not Account.objects.exists()
    assert not Run.objects.exists()


def test_what_migrations_made_is_there_again() -> None:
    planned = set(PeriodicTask.objects.values_list("name", flat=True))
    permissions, types = Permission.objects.count(), ContentType.objects.count()
    PeriodicTask.objects.all().delete()

    empty()

    assert planned
    assert set(PeriodicTask.objects.values_list("name", flat=True)) == planned
    assert (Permission.objects.count(), ContentType.objects.count()) == (permissions, types)


def test_a_table_that_has_grown_is_truncated() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TABLE large_for_a_test AS SELECT repeat('x', 900) AS said FROM generate_series(1, 2000)"
        )
        try:
            empty()
            cursor.execute("SELECT pg_relation_size('large_for_a_test')")
            assert cursor.fetchone() == (0,)
        finally:
            cursor.execute("DROP TABLE large_for_a_test")


def test_django_empties_the_database_in_this_way() -> None:
    assert TransactionTestCase._fixture_teardown is emptying.empty  # type: ignore[attr-defined]
