"""`python -m config.prepare`: bring the database up to date and make the demo operator, in one process.

The arguments are those of the command `demo`. Where no migration is pending, as on most starts, `migrate` is not run:
only the system's own periodic jobs are planned again, since a setting may have changed.
"""

import os
import sys
from collections.abc import Sequence

import django
from django.core.management import call_command
from django.core.management.sql import emit_post_migrate_signal
from django.db import connection
from django.db.migrations.executor import MigrationExecutor


def main(arguments: Sequence[str]) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    prepare()
    call_command("demo", *arguments)


def prepare() -> None:
    """Run the migrations that are pending, if any, and plan the periodic jobs."""
    if pending():
        call_command("migrate", interactive=False, verbosity=0)
    else:
        emit_post_migrate_signal(verbosity=0, interactive=False, db=connection.alias)


def pending() -> bool:
    """Decide whether the database lacks a migration."""
    executor = MigrationExecutor(connection)
    return bool(executor.migration_plan(executor.loader.graph.leaf_nodes()))


if __name__ == "__main__":
    main(sys.argv[1:])
