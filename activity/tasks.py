"""Celery tasks of activity. Each takes ids and makes one call."""

from django.utils import timezone

from activity import ledger_months
from activity import push as pushing
from activity.notify import PUSH_TASK
from activity.pruning import prune as pruning
from config.celery import app


@app.task(
    name=PUSH_TASK,
    autoretry_for=(pushing.NotNowError, OSError),
    retry_backoff=5,
    retry_jitter=True,
    max_retries=4,
)
def push(subscription_id: int, notification_id: int) -> None:
    pushing.send(subscription_id, notification_id)


@app.task(name="activity.make_ledger_months", expires=600)
def make_ledger_months() -> None:
    ledger_months.make_ahead(timezone.now())


@app.task(name="activity.prune", expires=600)
def prune() -> None:
    pruning.prune_by_settings()
