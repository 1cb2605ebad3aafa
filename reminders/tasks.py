"""Celery tasks of reminders. Each takes ids and makes one call."""

from django.utils import timezone

from accounts.approvals import requests
from config.celery import app
from delivery.engine import clock_reading
from delivery.inbound import store
from reminders import due
from reminders.conversations import replies
from reminders.follow_ups import tick as follow_ups


@app.task(name="reminders.fire_due", expires=10)
def fire_due() -> None:
    if not clock_reading.why_not():
        due.tick()


@app.task(name="reminders.end_approvals", expires=50)
def end_approvals() -> None:
    requests.expire_all(timezone.now())


@app.task(name=store.WORK)
def work_on_inbound(account_id: int) -> None:
    replies.work(account_id)


@app.task(name="reminders.sweep_inbound", expires=50)
def sweep_inbound() -> None:
    replies.sweep()


@app.task(name="reminders.follow_up", expires=25)
def follow_up() -> None:
    if not clock_reading.why_not():
        follow_ups.tick()


@app.task(name="reminders.clean_follow_ups", expires=600)
def clean_follow_ups() -> None:
    follow_ups.clean()
