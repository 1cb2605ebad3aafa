"""Celery tasks of the API. Each makes one call."""

from random import Random

from django.utils import timezone

from api import idempotency
from api.hooks import deliver, dispatch, leavers, results
from config.celery import app


@app.task(name="api.forget_answers", expires=600)
def forget_answers() -> None:
    idempotency.forget(now=timezone.now())
    dispatch.prune()


@app.task(name="api.dispatch_webhooks", expires=10)
def dispatch_webhooks() -> None:
    leavers.stop_forsaken()
    results.collect()
    dispatch.dispatch()


@app.task(name=dispatch.TASK, expires=40)
def deliver_webhook(webhook_id: int) -> None:
    deliver.serve(webhook_id, rng=Random())
