"""Celery tasks of queues. Each makes one call."""

from config.celery import app
from delivery.engine import clock_reading
from queues import keep_times


@app.task(name="queues.keep_times", expires=50)
def keep_planned_times() -> None:
    if not clock_reading.why_not():
        keep_times.keep_times()
