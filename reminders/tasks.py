"""Thin tasks: ids in, one call."""

from config.celery import app
from delivery.inbound import handling as inbound
from delivery.inbound import intake
from reminders import due
from reminders.follow_ups import tick as follow_ups
from reminders.inbound import handle


@app.task(name="reminders.fire_due", expires=10)
def fire_due() -> None:
    due.tick()


@app.task(name=intake.WORK)
def work_on_inbound(account_id: int) -> None:
    inbound.work(account_id, on_message=handle)


@app.task(name="reminders.sweep_inbound", expires=50)
def sweep_inbound() -> None:
    inbound.sweep(on_message=handle)


@app.task(name="reminders.follow_up", expires=25)
def follow_up() -> None:
    follow_ups.tick()


@app.task(name="reminders.clean_follow_ups", expires=600)
def clean_follow_ups() -> None:
    follow_ups.clean()
