"""Celery tasks of queues. Each makes one call."""

from random import Random

from config.celery import app
from delivery.engine import clock_reading
from queues import keep_times
from queues.imports import stages
from queues.sources import dispatch


@app.task(name="queues.keep_times", expires=50)
def keep_planned_times() -> None:
    if not clock_reading.why_not():
        keep_times.keep_times()


@app.task(name="queues.dispatch_sources", expires=10)
def dispatch_sources() -> None:
    dispatch.dispatch()


@app.task(name=dispatch.TASK, expires=60)
def serve_source(source_id: int, lease: int) -> None:
    from queues.sources import serve  # noqa: PLC0415 - loads the libraries of all services

    serve.serve(source_id, lease=lease, rng=Random())


@app.task(name=stages.TASK)
def import_items(job_id: int) -> None:
    stages.work(job_id)


@app.task(name="queues.rescue_imports", expires=50)
def rescue_imports() -> None:
    stages.rescue()
