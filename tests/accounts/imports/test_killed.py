"""A worker that is killed in the middle of an import, as a machine that loses power would."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit, urlunsplit

import pytest
from django.conf import settings
from django.db import connection

from accounts.imports import stages
from accounts.models import Import, Recipient, User
from tests.accounts.imports.test_stages import checked

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis")]

ROWS = 60
FILE = "Phone,Name,Tags\n" + "".join(f"+6012{number:07},Somebody,Choir\n" for number in range(ROWS))
# It stops within its transaction, with some rows written, and says so.
WORKER = """
import sys, django
django.setup()
from accounts.imports import check, progress, save, stages
save.CHUNK = 10

class Reporter(progress.Reporter):
    def tell(self, *, rows, share):
        if rows >= 30:
            print("in the middle", flush=True)
            sys.stdin.read()

save.Reporter = check.Reporter = Reporter
stages.work(int(sys.argv[1]))
"""


@contextmanager
def worker(job: Import) -> Iterator["subprocess.Popen[str]"]:
    """A process of its own, on the database and the Redis of this test, that has come half way."""
    database = urlsplit(settings.DATABASE_URL)._replace(path=f"/{connection.settings_dict['NAME']}")
    environment = os.environ | {
        "DEBUG": "true",
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "DATABASE_URL": urlunsplit(database),
        "REDIS_URL": settings.REDIS_URL,
    }
    pipe = subprocess.PIPE
    program = [sys.executable, "-c", WORKER, str(job.pk)]
    with subprocess.Popen(program, env=environment, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        try:
            while "in the middle" not in (line := process.stdout.readline()):
                assert line, "the worker ended before it came half way"
            yield process
        finally:
            process.kill()


def test_all_or_nothing_holds_when_its_worker_is_killed_and_another_goes_on(
    owner: User,
) -> None:
    job = checked(owner, FILE)
    Import.objects.filter(pk=job.pk).update(status="saving", started_at="2020-01-01T00:00Z")
    with worker(job) as process:
        assert stages.rescue() == []  # it is at work
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert not Recipient.objects.exists()
    assert Import.objects.get().status == "saving"
    deadline = time.monotonic() + 20
    while not stages.rescue():  # once PostgreSQL has noticed
        assert time.monotonic() < deadline
    stages.work(job.pk)
    assert (
        Import.objects.get().counts["added"] == Recipient.objects.filter(tags__name="Choir").count() == ROWS
    )
