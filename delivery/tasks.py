"""Celery tasks: each takes ids and makes one call."""

from django.utils import timezone

from activity.heartbeats import saw_beat
from config.celery import app
from delivery.engine import clock_reading, wakeups, workers
from delivery.engine import pump as engine
from delivery.engine import tick as ticking
from delivery.health import judge
from delivery.inbound import hidden_addresses, polling
from delivery.limits import warm_up
from delivery.sender_domain import check as sender_domain
from delivery.sessions import connect, first_contacts, groups, own_limits
from delivery.sessions import probe as probing
from delivery.trial import send

# A worker that imports the tasks also finds the account queues.
__all__ = ["judge_days", "pump", "tick", "workers"]


@app.task(name=wakeups.PUMP)
def pump(account_id: int) -> None:
    engine.pump(account_id)


@app.task(name=send.TASK)
def send_test(trial_id: str) -> None:
    send.send(trial_id)


@app.task(name=groups.TASK)
def sync_groups(sync_id: int) -> None:
    groups.run_in_turn(sync_id)


@app.task(name=sender_domain.TASK, expires=600)
def check_sender_domain(account_id: int) -> None:
    sender_domain.check_one(account_id)


@app.task(name="delivery.check_sender_domains", expires=500)
def check_sender_domains() -> None:
    sender_domain.check_due()


@app.task(name=first_contacts.READ_OWN_LIMITS, expires=600)
def read_own_limits(account_id: int) -> None:
    own_limits.read_one(account_id)


@app.task(name="delivery.read_all_own_limits", expires=100)
def read_all_own_limits() -> None:
    own_limits.read_due()


@app.task(name="delivery.register_webhooks", expires=50)
def register_webhooks() -> None:
    connect.register_webhooks()


@app.task(name=probing.TASK)
def probe() -> None:
    probing.probe_due()


@app.task(name="delivery.poll", expires=10)
def poll() -> None:
    polling.poll_all()


@app.task(name="delivery.ask_who_is_hidden", expires=50)
def ask_who_is_hidden() -> None:
    hidden_addresses.ask_all()


@app.task(name="delivery.tick", expires=10)
def tick() -> None:
    saw_beat()
    if not clock_reading.why_not():
        ticking.tick()


@app.task(name="delivery.watch_health", expires=100)
def watch_health() -> None:
    if not clock_reading.why_not():
        judge.watch(now=timezone.now())


@app.task(name="delivery.judge_days", expires=10)
def judge_days() -> None:
    if not clock_reading.why_not():
        warm_up.judge_days(now=timezone.now())
