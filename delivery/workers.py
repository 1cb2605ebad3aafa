"""How a worker finds the account queues of its share, new ones included, without a restart.

It looks when it starts, when it is told that an account was added, and every few seconds: a broadcast to a
worker that is down is lost.
"""

import gc
from dataclasses import dataclass
from typing import Any

import structlog
from celery import bootsteps
from celery.signals import celeryd_after_setup, worker_ready, worker_shutting_down
from celery.worker.control import control_command
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import connection
from kombu.transport import redis

from accounts.models import Account
from activity.health import saw_worker
from config.celery import app
from delivery import engine
from delivery.queues import queue_name
from delivery.seats import seats
from delivery.wire import wire

log = structlog.get_logger(__name__)

LOOK_EVERY = 5.0  # seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """The accounts that a worker serves: every `of`-th by id."""

    index: int
    of: int

    @classmethod
    def parse(cls, text: str) -> "Share":
        index, _, of = text.partition("/")
        if not (index.isdecimal() and of.isdecimal() and 1 <= int(index) <= int(of)):
            raise ImproperlyConfigured(
                f"ACCOUNT_SHARE is {text!r}: write it as i/n, as in 2/5, with i from 1 to n."
            )
        return cls(index=int(index), of=int(of))

    def holds(self, account_id: int) -> bool:
        return account_id % self.of == self.index - 1


def account_queues(share: Share) -> set[str]:
    ids = Account.objects.filter(archived_at=None).values_list("pk", flat=True)
    return {queue_name(account_id) for account_id in ids.iterator() if share.holds(account_id)}


class FindQueues(bootsteps.StartStopStep):
    """Part of the consumer: asks the database for queues, on the consumer's own timer."""

    requires = ("celery.worker.consumer.tasks:Tasks",)

    def __init__(self, parent: Any, **options: Any) -> None:
        super().__init__(parent, **options)
        self.share = Share.parse(settings.ACCOUNT_SHARE)

    def start(self, parent: Any) -> None:
        self.look(parent)
        parent.timer.call_repeatedly(LOOK_EVERY, self.look, (parent,))

    def look(self, parent: Any) -> None:
        try:
            saw_worker(parent.hostname)
            wanted = account_queues(self.share)
        except Exception:  # the database or Redis may be away for a while; the next look finds out
            log.warning("queues_not_read", exc_info=True)
            return
        finally:
            connection.close()
        consuming = {queue.name for queue in parent.task_consumer.queues}
        for name in sorted(wanted - consuming):
            parent.add_task_queue(name)
        for name in sorted(consuming - wanted - {app.conf.task_default_queue}):
            parent.cancel_task_queue(name)


app.steps["consumer"].add(FindQueues)


@control_command(name="look_for_queues")
def look_for_queues(state: Any) -> dict[str, str]:
    """Broadcast when an account is added."""
    for step in state.consumer.blueprint.steps.values():
        if isinstance(step, FindQueues):
            step.look(state.consumer)
    return {"ok": "looked"}


class Channel(redis.Channel):
    """A channel of the broker that says so when its connection is gone.

    When Redis goes away, messages in work are put back and acknowledged on a channel that is already closed.
    Celery expects an error of the connection from that and goes on; kombu 5.7.0 raises an AttributeError, which
    ends the worker. The messages are not missed: an account without a pump is found by its wake-up.
    """

    def _connparams(self, asynchronous: bool = False) -> dict[str, Any]:
        if self.connection is None or self.connection.client is None:
            raise ConnectionError("The connection to the broker is closed.")
        parameters: dict[str, Any] = super()._connparams(asynchronous)  # type: ignore[no-untyped-call]
        return parameters


redis.Transport.Channel = Channel


@celeryd_after_setup.connect
def _seat(instance: Any, **_: Any) -> None:
    seats.share(instance.concurrency)


@worker_ready.connect
def _ready(**_: Any) -> None:
    engine.stopping.clear()
    wire().warm_up()
    # What is loaded by now stays: looking through it again and again took a quarter of a busy worker's time.
    gc.collect()
    gc.freeze()


@worker_shutting_down.connect
def _shutting_down(**_: Any) -> None:
    engine.stopping.set()
