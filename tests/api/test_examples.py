"""The quick start and the example program of docs/api.md, run against a real server."""

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone
from pytest_django.live_server_helper import LiveServer

from accounts.models import Account, Recipient, Tag, User, Webhook
from api import keys
from api.hooks import deliver, dispatch
from api.scopes import Scope
from delivery import lifecycle
from delivery.models import Run
from reminders.conversations import replies
from reminders.fire import fire
from reminders.models import Reminder
from tests.config.programs import PROJECT
from tests.factories import AccountFactory, InboundFactory, OperatorFactory

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("live server")]

EXAMPLE = PROJECT / "docs" / "examples" / "fees.py"


@pytest.fixture
def account() -> Account:
    return AccountFactory.create(owner=OperatorFactory.create(username="owner"))


@pytest.fixture
def surroundings(account: Account, live_server: LiveServer) -> dict[str, str]:
    secret = keys.issue(account.owner, name="Example", scopes=list(Scope)).secret
    return {"PACELINE_URL": live_server.url, "PACELINE_KEY": secret, "ACCOUNT": str(account.pk)}


def quick_start() -> str:
    text = (PROJECT / "docs" / "api.md").read_text()
    return "\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))


def test_the_quick_start_runs_as_it_is_written(surroundings: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", quick_start()],
        env={**os.environ, **surroundings},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "['manage', 'read', 'send', 'steer']"
    assert lines[2].startswith("1 1 ")
    assert any("confirmation-needed" in line for line in lines)
    assert lines[-1] == "canceled"


@pytest.fixture
def program(surroundings: dict[str, str]) -> Iterator["subprocess.Popen[str]"]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    own = {"HOOK_PORT": str(port), "HOOK_URL": f"http://127.0.0.1:{port}/"}
    started = subprocess.Popen(
        [sys.executable, str(EXAMPLE)],
        env={**os.environ, **surroundings, **own},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    yield started
    started.kill()
    started.communicate()


def deliver_all() -> bool:
    """Do what the workers do; return False."""
    for webhook in Webhook.objects.all():
        Webhook.objects.update(retry_at=None)
        deliver.serve(webhook.pk, rng=Random(1))
    connection.close()
    return False


def wait_for(what: Any) -> Any:
    for _ in range(600):
        if found := what():
            return found
        time.sleep(0.1)
    raise AssertionError("It did not come.")


def test_the_example_program_follows_its_reminder_and_reacts_to_a_reply(
    program: "subprocess.Popen[str]", account: Account, redis: object
) -> None:
    reminder = wait_for(lambda: Reminder.objects.filter(status="scheduled").first())
    reminder.window_start_hour, reminder.window_end_hour = 0, 24  # the test may run at night
    reminder.save()
    run = fire(reminder, by=User.objects.get(pk=account.owner_id))
    lifecycle.cancel(Run.objects.get(pk=run.pk))
    anna = Recipient.objects.get(name="Aisyah")
    reply = InboundFactory.create(
        account=account, recipient=anna, text="I paid today.", sender=anna.address, chat=anna.address
    )
    replies.take_up(reply.pk)
    assert dispatch.dispatch()
    wait_for(
        lambda: (
            deliver_all()
            or program.poll() is not None
            or Recipient.objects.filter(tags__name="Paid").exists()
        )
    )
    out, _ = program.communicate(timeout=60)
    assert out.splitlines()[-1] == "Done."
    assert '{"type": "run.finished"}' in out
    assert list(Tag.objects.get(name="Paid").recipients.all()) == [anna]
    assert timezone.now() > reply.at
