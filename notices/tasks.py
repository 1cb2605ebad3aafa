"""Celery tasks of notifications outside. Each makes one call."""

from random import Random

from django.utils import timezone

from config.celery import app
from notices import deliver as delivering
from notices import dispatch, escalate, spread


@app.task(name="notices.go_on", expires=10)
def go_on() -> None:
    escalate.escalate(timezone.now())
    spread.spread()
    dispatch.dispatch()


@app.task(name=dispatch.TASK, expires=60)
def deliver(address_id: int) -> None:
    delivering.serve(address_id, rng=Random())
    dispatch.dispatch()


@app.task(name="notices.forget", expires=600)
def forget() -> None:
    dispatch.forget()
