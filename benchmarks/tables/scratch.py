"""A separate database for one benchmark, dropped afterwards."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection


@contextmanager
def database(purpose: str) -> Iterator[str]:
    """Use a new, migrated database on the same server; one that a killed run left is replaced."""
    original = str(connection.settings_dict["NAME"])
    connection.close()
    connection.close_pool()  # type: ignore[attr-defined]  # PostgreSQL's has one
    connection.settings_dict["TEST"]["NAME"] = f"{original}_{purpose}"
    name = connection.creation.create_test_db(verbosity=0, autoclobber=True, serialize=False)
    try:
        yield name
    finally:
        connection.creation.destroy_test_db(original, verbosity=0)
