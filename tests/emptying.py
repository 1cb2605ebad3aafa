"""Empties the database after a test that commits, in milliseconds.

Django truncates every table and makes permissions and content types again, which takes a second here: there are some
two hundred tables. Most tests write into twenty.
"""

from django.db import connections
from django.test import TransactionTestCase

# What migrations and their signals made stays as it was: no test has to make it again.
KEPT = ("django_migrations", "django_content_type", "auth_permission")
RESTORED = "django_celery_beat_%"

PREPARE = """
CREATE SCHEMA IF NOT EXISTS pristine;

DO $$
DECLARE
    known record;
BEGIN
    FOR known IN SELECT relname FROM pg_class
                 WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relname LIKE %(restored)s
    LOOP
        EXECUTE format('CREATE TABLE IF NOT EXISTS pristine.%%1$I AS TABLE public.%%1$I', known.relname);
    END LOOP;
END $$;

-- Rows are deleted where a table has any page. A large table is truncated, so that it does not grow from test to test.
-- The locks wait for what a late thread still writes, as TRUNCATE would. No trigger and no foreign key is asked.
CREATE OR REPLACE FUNCTION pristine.empty() RETURNS void LANGUAGE plpgsql SET session_replication_role = replica AS $$
DECLARE
    used record;
BEGIN
    FOR used IN SELECT oid::regclass AS name, pg_relation_size(oid) AS size FROM pg_class
                WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND pg_relation_size(oid) > 0
                  AND relname <> ALL (%(kept)s) ORDER BY oid
    LOOP
        IF used.size > 1000000 THEN
            EXECUTE format('TRUNCATE %%s CASCADE', used.name);
        ELSE
            EXECUTE format('LOCK TABLE %%s IN SHARE ROW EXCLUSIVE MODE', used.name);
            EXECUTE format('DELETE FROM %%s', used.name);
        END IF;
    END LOOP;
    FOR used IN SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'pristine'::regnamespace
    LOOP
        EXECUTE format('INSERT INTO public.%%1$I SELECT * FROM pristine.%%1$I', used.relname);
    END LOOP;
END $$;
"""


def prepare() -> None:
    """Keep a copy of what migrations planned, and make the function that empties; call it before the first test."""
    for connection in connections.all():
        with connection.cursor() as cursor:
            cursor.execute(PREPARE, {"kept": list(KEPT), "restored": RESTORED})


def empty(test: TransactionTestCase) -> None:
    """Do what `TransactionTestCase` does at the end of a test, and keep what migrations made."""
    for connection in connections.all():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pristine.empty()")
