"""Finds the account queues of a worker's share, new ones included, without a restart.

It looks when it starts, when it is told that an account was added, and every few seconds: a broadcast to a
worker that is down is lost.

A worker takes tasks of the common queue from the start. The account queues follow in slices, and tasks that have come
meanwhile are taken between two of them: with 10,000 accounts a worker would take none for a while. It counts as alive,
for `doctor` and load balancers, once it consumes from all of them.
"""

import gc
from typing import Any

import structlog
from celery import bootsteps
from celery.signals import celeryd_after_setup, worker_ready, worker_shutdown, worker_shutting_down
from celery.worker.control import control_command
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import connection

from accounts.models import Account
from accounts.share import Share
from activity import counters
from activity.heartbeats import saw_worker, tell
from config.celery import app
from config.pooler import refuse_pooler
from config.redis.client import refuse_cluster
from delivery.engine import clock_reading, pump, tick
from delivery.engine.loop import send_loop
from delivery.engine.wakeups import queue_name
from delivery.recovery import stop_sending

log = structlog.get_logger(__name__)

LOOK_EVERY = 5.0  # seconds
SLICE = 200  # queues that are added at once
GARBAGE = 20_000  # objects more than at the last look for garbage; at Python's 700 that took a sixth of a worker's time
BETWEEN = 0.02  # seconds between two slices, in which tasks are taken


def account_queues(share: Share) -> set[str]:
    ids = Account.objects.filter(archived_at=None).values_list("pk", flat=True)
    return {queue_name(account_id) for account_id in ids.iterator() if share.holds(account_id)}


class FindQueues(bootsteps.StartStopStep):
    """Part of the consumer: asks the database for queues, on the consumer's own timer."""

    requires = ("celery.worker.consumer.tasks:Tasks",)

    def __init__(self, parent: Any, **options: Any) -> None:
        super().__init__(parent, **options)
        self.share = Share.parse(settings.ACCOUNT_SHARE)
        self.missing: list[str] = []  # queues that are yet to be added
        self.serves = False  # all queues that were wanted at the start

    def start(self, parent: Any) -> None:
        self.look(parent)
        parent.timer.call_repeatedly(LOOK_EVERY, self.look, (parent,))

    def stop(self, _parent: Any) -> None:
        """Begin with the common queue again after a lost connection."""
        self.missing, self.serves = [], False
        app.amqp.queues.select([app.conf.task_default_queue])

    def look(self, parent: Any) -> None:
        """Report, and add or cancel queues. What is left of the slices of the last look is found again."""
        counters.flush()
        try:
            self._report(parent)
            wanted = account_queues(self.share)
        except Exception:  # the database or Redis may be away for a while; the next look finds out
            log.warning("queues_not_read", exc_info=True)
            return
        finally:
            connection.close()
        consuming = {queue.name for queue in parent.task_consumer.queues}
        for name in sorted(consuming - wanted - {app.conf.task_default_queue}):
            parent.cancel_task_queue(name)
        under_way = bool(self.missing)
        self.missing = sorted(wanted - consuming)
        if not under_way:
            self.add_slice(parent)

    def add_slice(self, parent: Any) -> None:
        """Add some of the missing queues, and come back for the others."""
        now, self.missing = self.missing[:SLICE], self.missing[SLICE:]
        try:
            for name in now:
                parent.task_consumer.add_queue(app.amqp.queues.select_add(app.amqp.queues[name]))
            parent.task_consumer.consume()
        except BaseException:  # the next look finds them again
            self.missing = []
            raise
        if self.missing:
            parent.timer.call_after(BETWEEN, self.add_slice, (parent,))
        elif not self.serves:
            self.serves = True
            log.info("serving", accounts=len(parent.task_consumer.queues) - 1)
            saw_worker(parent.hostname)

    def _report(self, parent: Any) -> None:
        if self.serves:
            saw_worker(parent.hostname)
        clock_reading.report(parent.hostname)
        if clock_reading.own_clock_is_off():
            tick.wake_unticked_accounts()
        tell(
            parent.hostname,
            share=settings.ACCOUNT_SHARE,
            threads=settings.WORKER_THREADS,
            serving=len(pump.under_way),
            oldest_lease=pump.oldest_lease(),
        )


app.steps["consumer"].add(FindQueues)


@control_command(name="look_for_queues")
def look_for_queues(state: Any) -> dict[str, str]:
    """Look for queues now; broadcast when an account is added."""
    for step in state.consumer.blueprint.steps.values():
        if isinstance(step, FindQueues):
            step.look(state.consumer)
    return {"ok": "looked"}


@celeryd_after_setup.connect
def _refuse(**_: Any) -> None:
    """End the worker with the sentence; Celery would only log any other error of a signal, and continue."""
    try:
        refuse_cluster()
        refuse_pooler()
    except ImproperlyConfigured as error:
        raise SystemExit(str(error)) from error


@celeryd_after_setup.connect
def _share_threads(instance: Any, **_: Any) -> None:
    stop_sending.stop_if_off()
    pump.places.share(instance.concurrency)


@worker_ready.connect
def _ready(**_: Any) -> None:
    pump.stopping.clear()
    send_loop().warm_up()
    # What is loaded by now stays: looking through it again and again took a quarter of a busy worker's time.
    gc.collect()
    gc.freeze()
    # And what its shifts hold is looked through less often: it comes and goes with every message, few of it in circles.
    gc.set_threshold(GARBAGE)


@worker_shutdown.connect
def _flush_counters(**_: Any) -> None:
    """Write what was counted since the last look; by now the last message has landed."""
    counters.flush()


@worker_shutting_down.connect
def _shutting_down(**_: Any) -> None:
    pump.stopping.set()
