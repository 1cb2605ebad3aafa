"""manage.py migrate: as Django's, but made for a database on which a release is sending.

A migration that waits for a lock lets everything behind it wait too, and one that changes two tables may meet a
statement that has them in the other order: PostgreSQL then ends one of the two. So a migration waits for a lock for
some seconds at most, and one that was ended is tried again: PostgreSQL has taken back what it had done.

Migrations without a transaction build indexes. They wait without being in the way, and are not tried again: half of
an index would be in the way of the next try.
"""

import time
from typing import Any

from django.core.management.commands import migrate
from django.db import OperationalError, connections
from django.db.migrations import Migration
from psycopg.errors import DeadlockDetected, LockNotAvailable

LOCK_TIMEOUT = "5s"
PAUSES = (1, 2, 5, 10, 10, 20, 20, 30)  # seconds before another try


class Command(migrate.Command):
    """Applies the migrations; see above."""

    _atomic = True

    def handle(self, *args: Any, **options: Any) -> None:
        self._alias = options["database"]
        try:
            for pause in PAUSES:
                if not (held := self._tried(*args, **options)):
                    return
                self.stderr.write(
                    f"Another statement held what a migration needs ({held}). It is tried again in {pause} s."
                )
                time.sleep(pause)
            super().handle(*args, **options)
        finally:
            self._wait_for_locks("0")

    def _tried(self, *args: Any, **options: Any) -> str:
        """Migrate; return what the database said where a lock was in the way, else nothing."""
        try:
            super().handle(*args, **options)
        except OperationalError as error:
            if not self._atomic or not isinstance(error.__cause__, DeadlockDetected | LockNotAvailable):
                raise
            return str(error).partition("\n")[0]
        return ""

    def migration_progress_callback(
        self, action: str, migration: Migration | None = None, fake: bool = False
    ) -> None:
        if action in {"apply_start", "unapply_start"} and migration is not None:
            self._atomic = migration.atomic
            self._wait_for_locks(LOCK_TIMEOUT if self._atomic else "0")
        super().migration_progress_callback(action, migration, fake)

    def _wait_for_locks(self, longest: str) -> None:
        """Set how long statements of this connection wait for a lock; "0" is without end."""
        with connections[self._alias].cursor() as cursor:
            cursor.execute("SELECT set_config('lock_timeout', %s, false)", [longest])
