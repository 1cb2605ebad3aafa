"""Stores media in an S3 bucket, for installations of several machines without a shared folder.

A message to a thousand groups opens its file a thousand times. So every machine keeps copies of the media that it read
in `MEDIA_ROOT`, up to `MEDIA_CACHE_MB`. Media are named by their content, so that a copy is never out of date.

A bucket that does not answer, or refuses, is an OSError here, as a disk in trouble is: runs wait for it and continue by
themselves.
"""

import os
import re
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from boto3.exceptions import Boto3Error
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from django.core.files.base import File
from storages.backends.s3 import S3Storage

from config.private_files import FOLDER

BY_CONTENT = re.compile(r"[0-9a-f]{2}/[0-9a-f]{64}")
PART = ".part"
LEFT_BEHIND = 3600.0  # seconds after which a part belongs to a process that died
MEGABYTE = 1024 * 1024
# Each try; a worker looks at a file before every shift, and its account waits meanwhile.
CONNECT_SECONDS, READ_SECONDS, TRIES = 5, 20, 2


class BucketError(OSError):
    """The bucket does not answer, or refuses. The text says what was asked and what it answered."""


class BucketStorage(S3Storage):  # type: ignore[misc]  # django-storages has no types
    """django-storages' S3, with errors of the operating system's kind and copies on this machine."""

    def __init__(self, *, cache: str, cache_mb: int, **options: Any) -> None:
        self._connecting = threading.Lock()
        self._connected: Any = None
        self.cache = Path(cache)
        self.cache_bytes = cache_mb * MEGABYTE
        # Other services than Amazon's have no name in DNS for each bucket.
        style = "path" if options.get("endpoint_url") else "auto"
        super().__init__(
            client_config=Config(
                connect_timeout=CONNECT_SECONDS,
                read_timeout=READ_SECONDS,
                retries={"total_max_attempts": TRIES, "mode": "standard"},
                max_pool_connections=32,
                signature_version="s3v4",
                s3={"addressing_style": style},
            ),
            file_overwrite=False,
            **options,
        )

    @property
    def connection(self) -> Any:
        """Return the connection of the whole process; django-storages would make one per thread, which takes long.

        boto3's clients may be shared by threads. Its resources, which may not, only make the objects of each call.
        """
        with self._connecting:
            if self._connected is None:
                self._connected = super().connection
        return self._connected

    def exists(self, name: str) -> bool:
        with self._asked("look for", name):
            return bool(super().exists(name))

    def size(self, name: str) -> int:
        with self._asked("look for", name):
            return int(super().size(name))

    def get_modified_time(self, name: str) -> datetime:
        with self._asked("look for", name):
            found: datetime = super().get_modified_time(name)
            return found

    def delete(self, name: str) -> None:
        with self._asked("delete", name):
            super().delete(name)
        if BY_CONTENT.fullmatch(name):
            (self.cache / name).unlink(missing_ok=True)

    def _save(self, name: str, content: "File[bytes]") -> str:
        with self._asked("write", name):
            return str(super()._save(name, content))

    def _open(self, name: str, mode: str = "rb") -> "File[bytes]":
        """Return a file of this machine with the content: a kept copy of media, a copy without a name of all else."""
        if mode != "rb":
            raise ValueError("Files of the bucket are only read; `save` writes them.")
        if not BY_CONTENT.fullmatch(name):
            return File(self._copy(name), name)
        return File(self._kept(name), name)

    def _copy(self, name: str) -> IO[bytes]:
        """Return a copy that has no name and is gone when it is closed."""
        copy = tempfile.TemporaryFile()  # noqa: SIM115 - whoever asked closes it
        try:
            self._fetch(name, copy)
        except BaseException:
            copy.close()
            raise
        copy.seek(0)
        return copy

    def _kept(self, name: str) -> IO[bytes]:
        path = self.cache / name
        try:
            found = path.open("rb")
            os.utime(path)  # it was used last now
        except FileNotFoundError:
            self._keep(name, path)
            found = path.open("rb")
            self._make_room(besides=path)
        return found

    def _keep(self, name: str, path: Path) -> None:
        """Fetch a file beside its place, and put it there in one step: several threads may want it at once."""
        path.parent.mkdir(mode=FOLDER, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, suffix=PART, delete=False) as part:
            try:
                self._fetch(name, part)
                part.flush()
                Path(part.name).replace(path)
            except BaseException:
                Path(part.name).unlink(missing_ok=True)
                raise

    def _fetch(self, name: str, into: IO[bytes]) -> None:
        with self._asked("read", name):
            answer = self.connection.meta.client.get_object(Bucket=self.bucket_name, Key=name)
            with answer["Body"] as body:
                shutil.copyfileobj(body, into, MEGABYTE)

    def _make_room(self, *, besides: Path) -> None:
        """Delete the copies that were not used for longest. Whoever has one open reads on."""
        copies = []
        for path in self.cache.glob("??/*"):
            with suppress(FileNotFoundError):
                found = path.stat()
                copies.append((found.st_mtime, found.st_size, path))
        total = sum(size for _, size, _ in copies)
        for used, size, path in sorted(copies):
            if total <= self.cache_bytes:
                return
            if path != besides and not (path.suffix == PART and used > time.time() - LEFT_BEHIND):
                path.unlink(missing_ok=True)
                total -= size

    @contextmanager
    def _asked(self, what: str, name: str) -> Iterator[None]:
        try:
            yield
        except ClientError as error:
            if error.response.get("ResponseMetadata", {}).get("HTTPStatusCode") == 404 and _no_key(error):
                raise FileNotFoundError(f"There is no {name} in the bucket {self.bucket_name}.") from error
            raise BucketError(f"Cannot {what} {name} in the bucket {self.bucket_name}: {error}") from error
        except (BotoCoreError, Boto3Error) as error:
            raise BucketError(f"Cannot {what} {name} in the bucket {self.bucket_name}: {error}") from error


def _no_key(error: ClientError) -> bool:
    return error.response.get("Error", {}).get("Code") in {"NoSuchKey", "404"}
