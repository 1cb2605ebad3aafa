"""A queue that does not answer delays a start; the page answers, and says so."""

import pytest
from django.conf import settings
from django.test import Client
from django.urls import reverse
from redis import Redis

from accounts.models import Account, User
from config.redis import connection
from config.redis.connection import silence
from config.redis.publishing import DELAYED
from tests.factories import RunAccountFactory, RunFactory, RunTargetFactory

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_page_that_resumes_a_run_says_that_the_start_is_delayed(
    client: Client, owner: User, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        connection, "LEFT_ALONE", 600.0
    )  # a process' first page can take longer than the usual
    run = RunFactory.create(
        reminder__owner=owner, reminder__around_the_clock=True, paused=True, total=1, pending=1
    )
    account = RunAccountFactory.create(run=run, account__owner=owner).account
    RunTargetFactory.create(run=run, account=account)
    client.force_login(owner)
    silence.heard_nothing(settings.REDIS_URL.removeprefix("unix://").partition("?")[0])
    try:
        page = client.post(reverse("runs:resume", args=[run.pk]), follow=True)
    finally:
        silence.forget()

    assert DELAYED in page.content.decode()
    run.refresh_from_db()
    assert run.status == "running"
    assert Account.objects.get(pk=account.pk).wake_at is not None  # which the tick looks at
