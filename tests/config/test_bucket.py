"""Media in an S3 bucket: the storage itself, and what pages, workers and checks make of it, on a local S3 server."""

import io
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse
from moto.server import ThreadedMotoServer
from pytest_django import Settings
from redis import Redis

from accounts.imports import stages
from accounts.imports.sheets import SheetError
from accounts.models import Import, User
from activity import heartbeats, media_marker
from activity.health import readiness
from activity.health.work_checks import Work, judge
from activity.health.workers import told
from config.bucket import BucketError, BucketStorage
from delivery.engine import uploads
from reminders.uploads import BadUploadError, store
from tests.config.programs import PROJECT, run
from tests.config.test_settings import complaint

BUCKET = "paceline-test"
KEYS = {"access_key": "key", "secret_key": "secret"}
PICTURE = PROJECT / "docs/images/account.png"
NAME = f"ab/ab{'0' * 62}"


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of an S3 server."""
    served = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    served.start()
    host, port = served.get_host_and_port()
    yield f"http://{host}:{port}"
    served.stop()


@pytest.fixture
def s3(server: str) -> Iterator[Any]:
    """A client of the server that knows nothing of Paceline; the bucket is empty before and gone after."""
    client = boto3.client(
        "s3",
        endpoint_url=server,
        region_name="us-east-1",
        aws_access_key_id="key",
        aws_secret_access_key="secret",
    )
    client.create_bucket(Bucket=BUCKET)
    yield client
    for each in client.list_objects_v2(Bucket=BUCKET).get("Contents", ()):
        client.delete_object(Bucket=BUCKET, Key=each["Key"])
    client.delete_bucket(Bucket=BUCKET)
    client.close()


def storage(server: str, cache: Path, *, cache_mb: int = 100, bucket: str = BUCKET) -> BucketStorage:
    """Return the storage of one machine, whose copies are in `cache`."""
    return BucketStorage(
        cache=str(cache),
        cache_mb=cache_mb,
        bucket_name=bucket,
        endpoint_url=server,
        region_name="us-east-1",
        **KEYS,
    )


@pytest.fixture
def one(s3: Any, server: str, tmp_path: Path) -> BucketStorage:
    return storage(server, tmp_path / "one")


@pytest.fixture
def other(s3: Any, server: str, tmp_path: Path) -> BucketStorage:
    return storage(server, tmp_path / "other")


@pytest.fixture
def configured(s3: Any, server: str, settings: Settings, tmp_path: Path) -> Settings:
    """This process keeps its media in the bucket."""
    settings.MEDIA_BUCKET = BUCKET
    settings.MEDIA_ROOT = tmp_path / "copies"
    use(settings, server, tmp_path / "copies")
    return settings


def use(settings: Settings, server: str, cache: Path, bucket: str = BUCKET) -> None:
    options = {
        "cache": str(cache),
        "cache_mb": 100,
        "bucket_name": bucket,
        "endpoint_url": server,
        "region_name": "us-east-1",
        **KEYS,
    }
    settings.STORAGES = {
        **settings.STORAGES,
        "default": {"BACKEND": "config.bucket.BucketStorage", "OPTIONS": options},
    }


def content(storage: BucketStorage, name: str) -> bytes:
    with storage.open(name) as file:
        return bytes(file.read())


class TestTheStorage:
    def test_what_one_machine_writes_another_reads(self, one: BucketStorage, other: BucketStorage) -> None:
        assert one.save(NAME, ContentFile(b"hello")) == NAME
        assert content(other, NAME) == b"hello"
        assert (other.exists(NAME), other.size(NAME)) == (True, 5)

    def test_media_are_fetched_once_per_machine(
        self, s3: Any, one: BucketStorage, other: BucketStorage
    ) -> None:
        one.save(NAME, ContentFile(b"hello"))
        assert content(other, NAME) == b"hello"
        s3.delete_object(Bucket=BUCKET, Key=NAME)
        assert content(other, NAME) == b"hello", "from the copy"
        with pytest.raises(FileNotFoundError, match=f"There is no {NAME} in the bucket {BUCKET}"):
            one.open(NAME)

    def test_a_copy_is_private(self, one: BucketStorage) -> None:
        one.save(NAME, ContentFile(b"hello"))
        content(one, NAME)
        assert (one.cache / NAME).stat().st_mode & 0o077 == 0
        assert (one.cache / NAME).parent.stat().st_mode & 0o077 == 0

    def test_other_files_leave_no_copy(self, one: BucketStorage) -> None:
        name = one.save("imports/7-list.csv", ContentFile(b"name,phone"))
        assert content(one, name) == b"name,phone"
        assert not one.cache.exists()

    def test_a_file_that_is_there_is_not_written_over(self, one: BucketStorage) -> None:
        first = one.save("imports/list.csv", ContentFile(b"a"))
        second = one.save("imports/list.csv", ContentFile(b"b"))
        assert first != second
        assert [content(one, name) for name in (first, second)] == [b"a", b"b"]

    def test_the_copies_used_last_are_kept(self, s3: Any, server: str, tmp_path: Path) -> None:
        small = storage(server, tmp_path / "small", cache_mb=1)
        names = [f"0{number}/0{number}{'0' * 62}" for number in range(4)]
        for age, name in enumerate(names):
            small.save(name, ContentFile(b"x" * 400_000))
            content(small, name)
            if age < 3:
                long_ago = time.time() - 7200 + age
                os.utime(small.cache / name, (long_ago, long_ago))
        kept = sorted(path.name for path in small.cache.glob("??/*"))
        assert kept == [name.partition("/")[2] for name in names[2:]]

    def test_a_deleted_file_has_no_copy_left(self, one: BucketStorage) -> None:
        one.save(NAME, ContentFile(b"hello"))
        content(one, NAME)
        one.delete(NAME)
        assert not one.exists(NAME)
        assert not (one.cache / NAME).exists()

    def test_a_fetch_that_fails_leaves_nothing(self, one: BucketStorage) -> None:
        with pytest.raises(FileNotFoundError):
            one.open(NAME)
        assert list(one.cache.glob("??/*")) == []

    def test_a_bucket_that_is_missing_is_a_disk_in_trouble(
        self, s3: Any, server: str, tmp_path: Path
    ) -> None:
        gone = storage(server, tmp_path, bucket="another")
        with pytest.raises(BucketError, match=r"in the bucket another: .*NoSuchBucket"):
            gone.open(NAME)
        with pytest.raises(BucketError, match=r"in the bucket another: .*NoSuchBucket"):
            gone.save(NAME, ContentFile(b"x"))

    def test_a_service_that_is_away_is_a_disk_in_trouble(self, tmp_path: Path) -> None:
        away = storage("http://127.0.0.1:9", tmp_path)
        for ask in (
            lambda: away.open(NAME),
            lambda: away.exists(NAME),
            lambda: away.size(NAME),
            lambda: away.delete(NAME),
            lambda: away.get_modified_time(NAME),
            lambda: away.save(NAME, ContentFile(b"x")),
        ):
            with pytest.raises(BucketError, match="Could not connect"):
                ask()

    def test_nothing_is_written_through_an_open_file(self, one: BucketStorage) -> None:
        with pytest.raises(ValueError, match="only read"):
            one.open(NAME, "wb")


@pytest.mark.django_db(transaction=True)
class TestPaceline:
    def picture(self) -> SimpleUploadedFile:
        return SimpleUploadedFile("shop.png", PICTURE.read_bytes())

    def test_an_uploaded_picture_is_shown_and_sent_from_the_bucket(
        self, configured: Settings, s3: Any, client: Client, owner: User
    ) -> None:
        media = store(self.picture(), owner=owner)
        assert s3.head_object(Bucket=BUCKET, Key=media.file.name)["ContentLength"] == media.size
        client.force_login(owner)
        answer = client.get(reverse("reminders:media", args=[media.pk]))
        assert len(b"".join(answer.streaming_content)) == media.size  # type: ignore[attr-defined]
        with uploads.open_file(media.file.name or "") as file:
            assert len(file.read()) == media.size

    def test_a_list_is_imported_from_the_bucket(self, configured: Settings, owner: User) -> None:
        list_ = ContentFile(b"name,phone\nAnn,+60123456789\n", name="list.csv")
        job = stages.upload(owner, list_, filename="list.csv", by=owner)
        stages.start_check(job)
        stages.confirm(job)
        job.refresh_from_db()
        assert job.status == Import.Status.DONE
        assert default_storage.listdir("imports")[1] == []

    def test_a_bucket_that_is_away_is_told_to_the_person_and_the_worker(
        self, configured: Settings, client: Client, owner: User, tmp_path: Path
    ) -> None:
        media = store(self.picture(), owner=owner)
        use(configured, "http://127.0.0.1:9", tmp_path / "elsewhere")
        client.force_login(owner)
        assert client.get(reverse("reminders:media", args=[media.pk])).status_code == 404
        media.delete()
        with pytest.raises(BadUploadError, match=r"could not be stored\. Try again in a minute\."):
            store(self.picture(), owner=owner)
        with pytest.raises(SheetError, match=r"could not be stored\. Nothing was saved\."):
            stages.upload(owner, ContentFile(b"name\nAnn\n"), filename="list.csv", by=owner)
        with pytest.raises(OSError, match="Could not connect"):
            uploads.open_file(media.file.name or "")

    def test_web_and_workers_on_other_machines_see_the_same_marker(
        self, configured: Settings, server: str, redis: Redis, tmp_path: Path
    ) -> None:
        web = heartbeats.announce_media()
        assert web.text
        use(configured, server, tmp_path / "worker")
        assert heartbeats.compare_media()
        heartbeats.tell("one", share="1/1")
        [report] = told(redis)
        assert report.media == web.text
        settled = media_marker.Marker(text=web.text, settled=True)
        assert all(check.ok for check in judge(Work(), [report], marker=settled))

    def test_a_worker_with_another_bucket_or_a_folder_is_named(
        self, configured: Settings, server: str, s3: Any, redis: Redis, tmp_path: Path
    ) -> None:
        heartbeats.announce_media()
        s3.create_bucket(Bucket="another")
        try:
            use(configured, server, tmp_path / "worker", bucket="another")
            assert not heartbeats.compare_media()
        finally:
            s3.delete_bucket(Bucket="another")

    def test_the_checks_say_what_the_bucket_answered(self, configured: Settings, tmp_path: Path) -> None:
        use(configured, "http://127.0.0.1:9", tmp_path)
        [media] = [check for check in readiness.probe().checks if check.name == "media"]
        assert not media.ok
        assert media.cause.startswith(f"bucket {BUCKET}: ")


class TestTheSettings:
    def test_the_bucket_is_the_storage(self) -> None:
        expression = (
            "import json; from config import settings; print(json.dumps(settings.STORAGES['default']))"
        )
        given = {
            "MEDIA_BUCKET": "b",
            "MEDIA_S3_ENDPOINT": "https://s3.example/",
            "MEDIA_S3_KEY": "k",
            "MEDIA_S3_SECRET": "s",
        }
        printed = json.load(io.StringIO(run("-c", expression, **given).stdout))
        assert printed["BACKEND"] == "config.bucket.BucketStorage"
        assert printed["OPTIONS"]["endpoint_url"] == "https://s3.example"
        assert printed["OPTIONS"]["access_key"] == "k"

    def test_half_an_address_is_refused_with_a_sentence(self) -> None:
        assert "which is not set. Name the bucket" in complaint(MEDIA_S3_ENDPOINT="https://s3.example")
        assert "belong together" in complaint(MEDIA_BUCKET="b", MEDIA_S3_KEY="k")
        assert "must start with https://" in complaint(MEDIA_BUCKET="b", MEDIA_S3_ENDPOINT="s3.example")
