"""A worker that is killed after a message left and before that is recorded: sent once more, under the same name."""

import os
import signal
import subprocess
import sys
from random import Random
from urllib.parse import quote

import pytest
from django.conf import settings
from django.db import connection
from django.utils import timezone

from accounts.models import User
from notices import deliver, dispatch
from notices.models import Notice, NoticeAddress
from tests.config.programs import PROJECT
from tests.factories import NoticeAddressFactory, NoticeFactory
from tests.notices.services import Mailbox

pytestmark = pytest.mark.django_db(transaction=True)


def database_url() -> str:
    """The database of the tests, as another process reaches it."""
    found = connection.settings_dict
    place = f"host={quote(str(found['HOST']), safe='')}&port={found['PORT'] or 5432}"
    return f"postgresql://{found['USER']}:{quote(str(found['PASSWORD']))}@/{found['NAME']}?{place}"


def started(mails: Mailbox) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "manage.py", "send_notices"],
        cwd=PROJECT,
        env={
            **os.environ,
            "DEBUG": "true",
            "DATABASE_URL": database_url(),
            "REDIS_URL": settings.REDIS_URL,
            "EMAIL_HOST": "127.0.0.1",
            "EMAIL_PORT": str(mails.port),
            "EMAIL_USE_TLS": "false",
            "DEFAULT_FROM_EMAIL": "paceline@example.com",
        },
    )


def test_a_killed_worker_leaves_one_message_that_is_sent_once_more(owner: User, mails: Mailbox) -> None:
    address = NoticeAddressFactory.create(person=owner, mailbox=True)
    NoticeFactory.create(address=address)
    worker: list[subprocess.Popen[bytes]] = []
    mails.before = lambda: os.kill(worker[0].pid, signal.SIGKILL)
    worker.append(started(mails))
    assert worker[0].wait(timeout=60) == -signal.SIGKILL
    notice = Notice.objects.get()
    assert (notice.state, notice.attempts) == ("pending", 1)
    assert notice.due_at > timezone.now(), "a worker that dies again and again does not send again and again"
    assert dispatch.take() == []

    mails.before = lambda: None
    Notice.objects.update(due_at=timezone.now())
    NoticeAddress.objects.update(busy_until=timezone.now())
    assert dispatch.take() == [address.pk]
    assert deliver.serve(address.pk, rng=Random(7))
    assert Notice.objects.get().state == "sent"
    assert len({mail["Message-ID"] for mail in mails.mails}) == 1
    assert len(mails.mails) == 2
