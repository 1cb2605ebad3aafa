"""Celery tasks of the API. Each makes one call."""

from django.utils import timezone

from api import idempotency
from config.celery import app


@app.task(name="api.forget_answers", expires=600)
def forget_answers() -> None:
    idempotency.forget(now=timezone.now())
