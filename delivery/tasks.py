"""Thin tasks: ids in, one call."""

from activity.health import saw_beat
from config.celery import app
from delivery import engine, queues, workers
from delivery import tick as ticking

__all__ = ["pump", "tick", "workers"]  # a worker that knows the tasks also finds the account queues


@app.task(name=queues.PUMP)
def pump(account_id: int) -> None:
    engine.pump(account_id)


@app.task(name="delivery.tick", expires=10)
def tick() -> None:
    saw_beat()
    ticking.tick()
