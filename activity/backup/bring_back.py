"""Restores a backup into an empty installation, with all sending stopped.

1. Read the manifest and check every file, before anything is changed.
2. Refuse an installation that is in use, a backup of a newer version, and keys that do not open its secrets.
3. Make the tables as they were when the backup was made, and fill them in one transaction: all or nothing. The stop of
   all sending is a part of it.
4. Apply the migrations that are newer than the backup, and put the files back.
5. Fire what came due in the lost time. A run that was fired then is fired again, and must be in doubt like the others.
6. Return what may have been sent since the backup. Sending cannot be started before somebody has decided about it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from django.conf import settings
from django.core.files.storage import default_storage
from django.core.management.sql import emit_post_migrate_signal
from django.db import connection, transaction
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone
from redis.exceptions import RedisError

from accounts.encryption import UnreadableSecretError
from accounts.models import Account
from activity.backup import files, tables
from activity.backup.manifest import BadBackupError, Manifest, damaged, key_names, read
from activity.backup.progress import Progress
from audit.record import record
from config.redis.client import client
from delivery.recovery import stop_sending
from delivery.recovery.after_restore import Doubt, Gap, find
from reminders.due import fire_due
from reminders.models import Reminder

SHOWN = 5
MOST_TICKS = 360


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """The backup that was brought back, and what may have been sent since the backup was made."""

    manifest: Manifest
    gap: Gap
    doubts: Sequence[Doubt]

    @property
    def messages(self) -> int:
        return sum(len(doubt.targets) for doubt in self.doubts)


def restore(
    folder: Path, progress: Progress, *, until: datetime | None = None, keyless: bool = False
) -> Restored:
    """Restore; raise BadBackupError. `until` is when the last message may have left, now if nobody knows.

    With `keyless` it goes on although no key of ENCRYPTION_KEY opens the stored credentials.
    """
    manifest = check(folder, keyless=keyless)
    tables.clear()
    _make_tables(manifest)
    progress.begin("Rows", manifest.rows)
    _load(folder, manifest, progress)
    executor = MigrationExecutor(connection)
    executor.migrate(executor.loader.graph.leaf_nodes())
    emit_post_migrate_signal(verbosity=0, interactive=False, db=connection.alias)
    progress.begin("Files", len(manifest.files))
    for name in files.bring_back(folder, list(manifest.files)):
        progress.more(name, 1)
    progress.end()
    return _look_back(manifest, until or timezone.now())


def check(folder: Path, *, keyless: bool = False) -> Manifest:
    """Return the manifest if the backup can be restored here; change nothing."""
    manifest = read(folder)
    if wrong := list(damaged(folder, manifest)):
        more = f" and {len(wrong) - SHOWN:,} more" if len(wrong) > SHOWN else ""
        raise BadBackupError(f"The backup is damaged: {', '.join(wrong[:SHOWN])}{more}. Use another one.")
    if used := tables.filled():
        raise BadBackupError(
            f"This installation is in use: there are rows in {', '.join(used)}. Restore into an empty database: a "
            "restore over newer data would send again what was sent since."
        )
    strange = [node for node in manifest.migrations if node not in _known_migrations()]
    if strange:
        app, name = strange[0]
        raise BadBackupError(
            f"The backup was made by version {manifest.version}, which has the migration {app}.{name}. Install that "
            "version, or a later one."
        )
    if not keyless and manifest.keys and not {*manifest.keys} & {*key_names(settings.ENCRYPTION_KEYS)}:
        raise BadBackupError(
            "None of the keys in ENCRYPTION_KEY is one that the backup was made with, so the stored credentials of "
            "all accounts could not be read. Add the old key, or enter all credentials anew after "
            "`restore --without-credentials`."
        )
    _require_servers(manifest)
    return manifest


def _require_servers(manifest: Manifest) -> None:
    """Refuse while Redis or the place of the media does not answer: a restore must not stop half-way."""
    try:
        client().ping()
        if manifest.files:
            default_storage.exists(manifest.files[0].name)
    except RedisError as error:
        raise BadBackupError("Redis does not answer (REDIS_URL). Start it, then restore again.") from error
    except OSError as error:
        raise BadBackupError(f"The place of the media does not answer: {error}") from error


def unreadable_accounts() -> list[str]:
    """Return the accounts whose credentials no key opens."""
    return [str(account) for account in Account.objects.order_by("pk") if not _opens(account)]


def _opens(account: Account) -> bool:
    try:
        dict(account.credentials)
    except UnreadableSecretError:
        return False
    return True


def _make_tables(manifest: Manifest) -> None:
    """Apply the migrations of the backup and no later ones: the last of each branch names those before it."""
    executor, applied = MigrationExecutor(connection), set(manifest.migrations)
    nodes = executor.loader.graph.node_map
    last = [
        node for node in manifest.migrations if not {child.key for child in nodes[node].children} & applied
    ]
    executor.migrate(last)


def _known_migrations() -> set[tuple[str, str]]:
    return set(MigrationExecutor(connection).loader.disk_migrations)


# The columns that every version has: newer ones may not be there yet.
STOP = """
INSERT INTO accounts_sendingstop (reason, stopped_at)
SELECT 'A backup is being restored', now()
WHERE NOT EXISTS (SELECT 1 FROM accounts_sendingstop WHERE owner_id IS NULL AND ended_at IS NULL)
"""


def _load(folder: Path, manifest: Manifest, progress: Progress) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = 0")
        for table in manifest.tables:
            tables.load(folder, table, progress.more)
        tables.set_sequences(dict(manifest.sequences))
        cursor.execute(STOP)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


def _look_back(manifest: Manifest, until: datetime) -> Restored:
    with transaction.atomic():
        stop_sending.restored(manifest.at)
        record("data.restored", after={"of": manifest.at, "rows": manifest.rows})
    _forget_counts()
    _fire_what_came_due()
    gap = Gap(since=manifest.at, until=until)
    doubts = list(find(gap)) if until > manifest.at else []
    if not doubts:
        stop_sending.decided()
    return Restored(manifest=manifest, gap=gap, doubts=doubts)


def _forget_counts() -> None:
    """Forget what Redis counted for the limits and the leases: it is rebuilt from the ledger, as after its loss."""
    for keys in _batches():
        client().delete(*keys)


def _batches() -> Iterator[list[bytes]]:
    found = list(client().scan_iter(match="paceline:*", count=1_000))
    for start in range(0, len(found), 1_000):
        yield found[start : start + 1_000]


def _fire_what_came_due() -> None:
    for _ in range(MOST_TICKS):
        if not Reminder.objects.due(timezone.now()).exists():
            return
        fire_due()
