"""A backup holds everything of one moment and no secret, and comes back only where it is safe."""

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from cryptography.fernet import Fernet
from django.conf import settings as django_settings
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.core.management import call_command
from django.db import connection
from django.test import Client
from moto.server import ThreadedMotoServer

from accounts.models import Account, Recipient, SendingStop
from activity.backup import files, tables
from activity.backup.bring_back import check
from activity.backup.make import backup
from activity.backup.manifest import NAME, BadBackupError, Manifest, damaged
from activity.backup.progress import Progress
from audit.models import Entry
from audit.origin import Door, Origin, coming_from
from config.bucket import BucketStorage
from config.redis.client import client
from delivery.recovery import stop_sending
from tests.config.programs import PROJECT
from tests.factories import AccountFactory, MediaFactory, RecipientFactory, ReminderFactory, UserFactory

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis")]
QUIET = Progress(None)


def made(folder: Path) -> Manifest:
    return backup(folder / "backup", QUIET)


def text_of(folder: Path) -> str:
    """Return everything that a reader of the folder can see of the rows."""
    return "".join(gzip.decompress(path.read_bytes()).decode() for path in folder.rglob("*.copy.gz"))


def test_it_holds_all_rows_all_files_and_a_list_with_checksums(tmp_path: Path) -> None:
    RecipientFactory.create_batch(3, name="Anna")
    media = MediaFactory.create()
    default_storage.delete(str(media.file.name))
    default_storage.save(str(media.file.name), ContentFile(b"a picture"))
    manifest = made(tmp_path)
    assert {table.name: table.rows for table in manifest.tables}["accounts_recipient"] == 3
    assert {table.name for table in manifest.tables} >= {
        "activity_attempt",
        "audit_entry",
        "delivery_runtarget",
    }
    assert [(file.name, file.size) for file in manifest.files] == [(media.file.name, 9)]
    assert list(damaged(tmp_path / "backup", manifest)) == []
    assert "Anna" in text_of(tmp_path / "backup")


def test_no_secret_is_in_it_and_nobody_else_may_read_it(tmp_path: Path, client: Client) -> None:
    AccountFactory.create(credentials={"api_key": "a secret of the service"})
    client.force_login(UserFactory.create(with_password=True))
    made(tmp_path)
    found = text_of(tmp_path / "backup") + (tmp_path / "backup" / NAME).read_text()
    secrets = ["a secret of the service", client.session.session_key, django_settings.SECRET_KEY]
    secrets += [*django_settings.ENCRYPTION_KEYS, "a long way to the pace line"]
    assert [secret for secret in secrets if str(secret) in found] == []
    assert {path.stat().st_mode & 0o077 for path in tmp_path.rglob("backup/**/*")} == {0}


def test_what_is_written_meanwhile_is_not_in_it(tmp_path: Path) -> None:
    """All tables are of one moment, however long they take."""
    RecipientFactory.create()
    with tables.snapshot():
        with psycopg.connect(
            **connection.get_connection_params() | {"cursor_factory": psycopg.Cursor}
        ) as other:
            other.execute("UPDATE accounts_recipient SET name = 'Later'")
        (tmp_path / "tables").mkdir()
        names = {name: columns for name, _, columns in tables.known()}
        tables.write(tmp_path, "accounts_recipient", names["accounts_recipient"], QUIET.more)
    assert "Later" not in text_of(tmp_path)
    assert Recipient.objects.get().name == "Later"


def test_a_file_that_is_gone_is_noted_and_stops_nothing(tmp_path: Path) -> None:
    media = MediaFactory.create()
    default_storage.delete(str(media.file.name))
    assert list(made(tmp_path).missing) == [media.file.name]


def test_a_backup_is_recorded_and_replaces_nothing(tmp_path: Path) -> None:
    with coming_from(Origin(door=Door.COMMAND, via="manage.py backup by root")):
        made(tmp_path)
    assert Entry.objects.get().action == "data.backed_up"
    with pytest.raises(BadBackupError, match="there already"):
        made(tmp_path)


def test_one_that_was_interrupted_does_not_look_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(tables, "sequences", interrupted)
    with pytest.raises(KeyboardInterrupt):
        made(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_installation_in_use_is_refused(tmp_path: Path) -> None:
    made(tmp_path)
    UserFactory.create()
    with pytest.raises(BadBackupError, match="in use: there are rows in accounts_user"):
        check(tmp_path / "backup")
    with pytest.raises(BadBackupError, match="not empty"):
        tables.clear()


def test_a_changed_file_is_found_before_anything_is_touched(tmp_path: Path) -> None:
    made(tmp_path)
    (tmp_path / "backup/tables/accounts_user.copy.gz").write_bytes(b"something else")
    with pytest.raises(BadBackupError, match=r"damaged: tables/accounts_user.copy.gz. Use another"):
        check(tmp_path / "backup")


@pytest.mark.parametrize("text", ["", "[]", '{"format": 1}', '{"format": 99}'])
def test_a_folder_that_is_no_backup_is_refused_with_a_sentence(text: str, tmp_path: Path) -> None:
    if text:
        (tmp_path / NAME).write_text(text)
    with pytest.raises(BadBackupError):
        check(tmp_path)


def rewritten(folder: Path, **changes: Any) -> None:
    """Write other values into a manifest, as somebody would who also writes the right checksum."""
    listed = folder / "backup" / NAME
    body = json.loads(listed.read_text()) | changes
    body.pop("checksum")
    listed.write_text(json.dumps(body))


def test_a_manifest_in_which_one_word_changed_is_refused(tmp_path: Path) -> None:
    made(tmp_path)
    listed = tmp_path / "backup" / NAME
    listed.write_text(listed.read_text().replace('"version": "', '"version": "9'))
    with pytest.raises(BadBackupError, match="changed after the backup was made"):
        check(tmp_path / "backup")


@pytest.mark.parametrize(
    "forged",
    [
        {"files": [{"name": "a", "file": "../../etc/passwd", "size": 1, "sha256": "0"}]},
        {"files": [{"name": "../../outside", "file": "files/00000000", "size": 1, "sha256": "0"}]},
        {"files": [{"name": "/outside", "file": "files/00000000", "size": 1, "sha256": "0"}]},
        {
            "tables": [
                {"name": "x;y", "columns": ["id"], "rows": 1, "file": "tables/x;y.copy.gz", "sha256": "0"}
            ]
        },
        {"tables": [{"name": "x", "columns": ["id"], "rows": 1, "file": "/etc/passwd", "sha256": "0"}]},
    ],
)
def test_a_forged_manifest_reaches_nothing_outside_of_the_folder(
    forged: dict[str, Any], tmp_path: Path
) -> None:
    made(tmp_path)
    rewritten(tmp_path, **forged)
    with pytest.raises(BadBackupError, match="which no backup has"):
        check(tmp_path / "backup")


@pytest.mark.parametrize("cut", [0, 1, 100])
def test_a_file_that_was_cut_is_refused(cut: int, tmp_path: Path) -> None:
    made(tmp_path)
    rows = tmp_path / "backup/tables/django_content_type.copy.gz"
    rows.write_bytes(rows.read_bytes()[:cut])
    with pytest.raises(BadBackupError, match=r"damaged: tables/django_content_type"):
        check(tmp_path / "backup")
    rows.unlink()
    with pytest.raises(BadBackupError, match="damaged"):
        check(tmp_path / "backup")


def test_a_file_of_another_program_is_refused_with_a_sentence(tmp_path: Path) -> None:
    dump = tmp_path / "dump.sql"
    dump.write_text("-- PostgreSQL database dump")
    with pytest.raises(BadBackupError, match=r"is a file\. A backup of Paceline is a folder"):
        check(dump)


def test_it_waits_for_redis_before_anything_is_changed(tmp_path: Path, settings: Any) -> None:
    made(tmp_path)
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    client.cache_clear()
    try:
        with pytest.raises(BadBackupError, match="Redis does not answer"):
            check(tmp_path / "backup")
    finally:
        client.cache_clear()


def test_media_in_a_bucket_are_in_it_and_come_back_into_a_bucket(tmp_path: Path) -> None:
    served = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    served.start()
    host, port = served.get_host_and_port()
    old, new = (_bucket(f"http://{host}:{port}", name, tmp_path) for name in ("old", "new"))
    kept, gone = MediaFactory.create(), MediaFactory.create()
    with override_storages(old):
        old.save(kept.file.name, ContentFile(b"a picture"))
        manifest = made(tmp_path)
    assert [(file.name, file.size) for file in manifest.files] == [(kept.file.name, 9)]
    assert list(manifest.missing) == [gone.file.name]
    with override_storages(new):
        assert check_files(tmp_path / "backup", manifest) == [kept.file.name]
        with default_storage.open(str(kept.file.name)) as back:
            assert back.read() == b"a picture"
        assert check_files(tmp_path / "backup", manifest) == [kept.file.name]  # a second time changes nothing
    served.stop()


def _bucket(address: str, name: str, cache: Path) -> BucketStorage:
    storage = BucketStorage(
        cache=str(cache / name),
        cache_mb=10,
        bucket_name=name,
        endpoint_url=address,
        region_name="us-east-1",
        access_key="key",
        secret_key="secret",
    )
    storage.connection.meta.client.create_bucket(Bucket=name)
    return storage


@contextmanager
def override_storages(storage: BucketStorage) -> Iterator[None]:
    with patch.object(default_storage, "_wrapped", storage):
        yield


def check_files(folder: Path, manifest: Manifest) -> list[str]:
    return list(files.bring_back(folder, list(manifest.files)))


def test_a_backup_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    made(tmp_path)
    rewritten(tmp_path, migrations=[["accounts", "9999_later"]], version="9.9")
    with pytest.raises(BadBackupError, match=r"version 9.9, which has the migration accounts.9999_later"):
        check(tmp_path / "backup")


def test_a_changed_key_is_refused_until_somebody_says_so(tmp_path: Path, settings: Any) -> None:
    made(tmp_path)
    old = settings.ENCRYPTION_KEYS
    settings.ENCRYPTION_KEYS = [Fernet.generate_key().decode()]
    with pytest.raises(BadBackupError, match="Add the old key"):
        check(tmp_path / "backup")
    assert check(tmp_path / "backup", keyless=True).rows >= 0
    settings.ENCRYPTION_KEYS = [*settings.ENCRYPTION_KEYS, *old]
    assert check(tmp_path / "backup").rows >= 0


def test_sending_cannot_be_started_before_somebody_has_decided() -> None:
    stop_sending.restored(datetime(2026, 11, 18, 10, tzinfo=UTC))
    with pytest.raises(stop_sending.UndecidedError, match="after_restore --apply"):
        stop_sending.start(None)
    staff = UserFactory.create(staff=True)
    page = Client()
    page.force_login(staff)
    answer = page.post("/sending/", {"whose": "all", "to": "start"}, follow=True).content.decode()
    assert "was restored to" in answer
    assert SendingStop.objects.filter(ended_at=None).exists()
    out = StringIO()
    call_command("after_restore", "--nothing-was-sent", stdout=out)
    assert "nothing was sent" in out.getvalue()
    assert stop_sending.start(None)


@pytest.fixture
def empty() -> Iterator[dict[str, str]]:
    """An environment with an empty database of its own."""
    here = connection.get_connection_params() | {"cursor_factory": psycopg.Cursor}
    name = f"{here['dbname']}_restored"
    with psycopg.connect(**here, autocommit=True) as server:
        server.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        server.execute(f'CREATE DATABASE "{name}"')
        address = urlsplit(os.environ["DATABASE_URL"])
        url = urlunsplit(address._replace(path=f"/{name}"))
        yield os.environ | {"DATABASE_URL": url, "DEBUG": "true", "REDIS_URL": django_settings.REDIS_URL}
        server.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


def manage(env: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "manage.py", *arguments]
    return subprocess.run(
        command, cwd=PROJECT, env=env, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )


def test_everything_comes_back_with_sending_stopped_and_a_second_restore_is_refused(
    tmp_path: Path, empty: dict[str, str]
) -> None:
    account = AccountFactory.create(credentials={"api_key": "secret"}, name="Office")
    reminder = ReminderFactory.create(owner=account.owner, accounts=[account], around_the_clock=True)
    recipient = RecipientFactory.create(
        owner=account.owner, name="Zoë \\ \n\t “quoted”", fields={"city": "Ipoh\n"}
    )
    with coming_from(Origin(door=Door.COMMAND)):
        manifest = made(tmp_path)
    media = tmp_path / "media"
    env = empty | {"MEDIA_ROOT": str(media)}
    done = manage(env, "restore", str(tmp_path / "backup"), "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["rows"] == manifest.rows
    with psycopg.connect(env["DATABASE_URL"]) as found:
        rows = found.execute("SELECT name, fields FROM accounts_recipient").fetchall()
        assert rows == [(recipient.name, recipient.fields)]
        stops = found.execute("SELECT count(*) FROM accounts_sendingstop WHERE ended_at IS NULL").fetchone()
        assert stops == (1,)
        (new,) = found.execute(
            "INSERT INTO accounts_tag (owner_id, name) VALUES (%s, 'x') RETURNING id", [account.owner_id]
        ).fetchone() or (0,)
        assert new > 0
        (stored,) = found.execute("SELECT credentials FROM accounts_account").fetchone() or ("",)
        assert "secret" not in stored
        for table in manifest.tables:
            if table.name not in {
                "accounts_sendingstop",
                "audit_entry",
                "accounts_tag",
                "django_celery_beat",
            }:
                counted = found.execute(f'SELECT count(*) FROM "{table.name}"').fetchone()
                assert counted == (table.rows,), table.name
    again = manage(env, "restore", str(tmp_path / "backup"))
    assert (again.returncode, "in use" in again.stderr) == (1, True)
    assert reminder.pk
    assert Account.objects.count() == 1


def test_a_backup_of_an_older_version_is_brought_up_to_date(tmp_path: Path, empty: dict[str, str]) -> None:
    """Its tables are made as they were, filled, and only then changed by the newer migrations."""
    env = empty | {"MEDIA_ROOT": str(tmp_path / "media")}
    older = ["notices", "0001"]
    assert manage(env, "migrate", "--verbosity=0").returncode == 0
    assert manage(env, "migrate", *older, "--verbosity=0").returncode == 0
    with psycopg.connect(env["DATABASE_URL"]) as found:
        found.execute(
            "INSERT INTO accounts_user (username, password, is_active, is_staff, is_superuser, first_name, last_name,"
            " email, date_joined, zone) VALUES ('anna', '', true, false, false, '', '', '', now(), '')"
        )
    assert manage(env, "backup", str(tmp_path / "old")).returncode == 0
    with psycopg.connect(env["DATABASE_URL"]) as found:
        found.execute("DROP SCHEMA public CASCADE")
        found.execute("CREATE SCHEMA public")
    done = manage(env, "restore", str(tmp_path / "old"))
    assert done.returncode == 0, done.stderr
    with psycopg.connect(env["DATABASE_URL"]) as found:
        assert found.execute("SELECT username FROM accounts_user").fetchall() == [("anna",)]
        assert found.execute("SELECT count(*) FROM notices_accountescalation").fetchone() == (0,)
