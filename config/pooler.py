"""Detects a pooler such as PgBouncer between this program and PostgreSQL."""

from typing import Any

import psycopg
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import connection

SENTENCE = (
    "DATABASE_URL leads to a pooler such as PgBouncer, whose sessions are nobody's own. Set PGBOUNCER=true, or "
    "connect to PostgreSQL itself."
)
REFUSED = "unsupported startup parameter"  # PgBouncer's answer to options of ours that it does not take
SECONDS = 3


def pooled(link: "psycopg.Connection[Any]") -> bool:
    """Return whether the answering server process differs from the one announced when connecting."""
    row = link.execute("SELECT pg_backend_pid()").fetchone()
    return row is not None and int(row[0]) != link.info.backend_pid


def refuse_pooler() -> None:
    """Stop a worker that is not set up for its pooler: its prepared statements would be missing now and then."""
    if settings.PGBOUNCER:
        return
    try:
        with connect() as link:
            found = pooled(link)
    except psycopg.OperationalError as error:
        found = REFUSED in str(error)  # after any other error the worker waits for the database
    if found:
        raise ImproperlyConfigured(SENTENCE)


def connect() -> "psycopg.Connection[Any]":
    """Connect without Django's pool, which would wait long for a server that is away."""
    asked = connection.get_connection_params() | {"connect_timeout": SECONDS}
    return psycopg.connect(**asked)
