"""Thin tasks: ids in, one call."""

from django.utils import timezone

from activity.health import saw_beat
from config.celery import app
from delivery import connection, engine, queues, sync, test_send, warming, workers
from delivery import tick as ticking
from delivery.inbound import polling

# A worker that knows the tasks also finds the account queues.
__all__ = ["judge_days", "pump", "tick", "workers"]


@app.task(name=queues.PUMP)
def pump(account_id: int) -> None:
    engine.pump(account_id)


@app.task(name=test_send.TASK)
def send_test(ticket_id: str) -> None:
    test_send.send(ticket_id)


@app.task(name=sync.TASK)
def sync_groups(sync_id: int) -> None:
    sync.run(sync_id)


@app.task(name="delivery.register_webhooks", expires=50)
def register_webhooks() -> None:
    connection.register_webhooks()


@app.task(name="delivery.poll", expires=10)
def poll() -> None:
    polling.poll_all()


@app.task(name="delivery.tick", expires=10)
def tick() -> None:
    saw_beat()
    ticking.tick()


@app.task(name="delivery.judge_days", expires=10)
def judge_days() -> None:
    warming.judge_days(now=timezone.now())
