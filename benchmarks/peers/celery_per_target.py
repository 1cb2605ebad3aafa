"""The comparison without Paceline: Django and a Celery task per target, with its connections reused."""

import os
from collections.abc import Callable
from functools import cache

import requests
from celery import Celery
from django.conf import settings

if not settings.configured:
    from config.embedded import database_settings

    settings.configure(
        SECRET_KEY="bench",
        USE_TZ=True,
        DATABASES={
            "default": {
                **database_settings(os.environ["PLAIN_DATABASE"]),
                "ENGINE": "django.db.backends.postgresql",
                "CONN_MAX_AGE": None,
            },
        },
    )
    import django

    django.setup()

from django.db import models
from django.db.models.functions import Now

app = Celery("per_target", broker=os.environ.get("BROKER_URL"))
app.conf.update(task_ignore_result=True, worker_prefetch_multiplier=4, task_default_queue="per-target")
# Without this, Celery closes Django's connections around every task, whatever CONN_MAX_AGE says.
app.conf["CELERY_DB_REUSE_MAX"] = 10**9

HEADERS = {"Authorization": "Bearer bench"}


class Target(models.Model):
    """One recipient, and whether it has been sent."""

    account = models.TextField()
    address = models.TextField()
    body = models.TextField()
    status = models.TextField(default="pending")
    sent_at = models.DateTimeField(null=True)

    objects: "models.Manager[Target]" = models.Manager()

    class Meta:
        app_label = "bench"
        db_table = "per_target"

    def __str__(self) -> str:
        return self.address


@cache
def post() -> Callable[..., requests.Response]:
    return requests.Session().post


@app.task(name="send_target")
def send_target(target_id: int) -> None:
    """Read the row, send, record."""
    target = Target.objects.get(pk=target_id)
    answer = post()(
        f"{os.environ['SINK']}/api/{target.account}/messages",
        json={"to": target.address, "text": target.body},
        headers={**HEADERS, "Idempotency-Key": f"celery-{target_id}"},
        timeout=30,
    )
    answer.raise_for_status()
    Target.objects.filter(pk=target_id).update(status="sent", sent_at=Now())
