"""Works on one source for a while: writes back what is to be told, and reads what is due.

A worker has a source for as long as its lease: a claim that it renews before each step. Whatever goes wrong with the
service is written down in words; nothing follows from it but a later try, or that a person is asked to do something.
"""

import time
from datetime import timedelta
from random import Random

import structlog
from django.utils import timezone

from activity.models import Notification
from activity.notify import tell as notify
from delivery.transports.networks.names import on_behalf_of
from queues.models import Source
from queues.sources import reading, writing
from queues.sources.dispatch import BUSY
from queues.sources.opening import columns, opened, zone_of
from queues.sources.reading import Reading
from queues.sources.tables import Schema, Table
from queues.sources.troubles import StoppedError, TroubleError, WaitError
from reminders.drafts import NotPossibleError

log = structlog.get_logger(__name__)

SHIFT_SECONDS = 20.0
TELL_EVERY = timedelta(seconds=30)
AFTER_CONFLICT = timedelta(seconds=10)
PAUSES = (15, 60, 300, 900)  # seconds after failures in a row
JITTER = 0.2
TOLD_AFTER = timedelta(hours=1)


class Shift:
    """One stay of a worker with a source."""

    def __init__(self, source: Source, table: Table, *, lease: int) -> None:
        self.source, self.table, self._lease = source, table, lease
        self._reading: Reading | None = None
        self._schema: Schema | None = None
        self._told = (
            0  # up to this item all rows were told in this shift: not all are compared for each batch
        )
        self.steps = 0

    def step(self) -> bool:
        """Write a few rows and read a portion, what of the two is due; return whether more is to be done."""
        if not self._renew():
            return False
        told = self._tell_if_due()
        read = self._read_if_due()
        self.steps += told or read
        return told or read

    def _renew(self) -> bool:
        """Hold the source for another step; return False where it is not this worker's any more, or must rest."""
        now = timezone.now()
        rows = Source.objects.filter(
            pk=self.source.pk, lease=self._lease, switched_off_at=None, stopped_at=None
        )
        if not rows.update(busy_until=now + BUSY):
            return False
        self.source = Source.objects.select_related("queue__owner").get(pk=self.source.pk)
        return True

    def _tell_if_due(self) -> bool:
        now = timezone.now()
        if self.source.next_tell_at is None or self.source.next_tell_at > now:
            return False
        began = time.monotonic()
        schema = self._known_schema()
        zone = zone_of(self.source, schema)
        done = writing.tell(self.source, self.table, schema, zone, after=self._told)
        if done.more and not done.later:
            self._told = done.last
            return True
        if self._told and not done.later:
            self._told = 0  # those before it may have news by now
            return True
        self._told = 0
        # To look through a large queue takes a while: it is looked at so seldom that it stays a small part of the time.
        took = timedelta(seconds=time.monotonic() - began) if not done.written else timedelta()
        pause = AFTER_CONFLICT if done.later else max(TELL_EVERY, 20 * took)
        Source.objects.filter(pk=self.source.pk).update(next_tell_at=timezone.now() + pause)
        return done.written > 0

    def _known_schema(self) -> Schema:
        if self._schema is None:
            self._schema = self.table.schema()
        return self._schema

    def _read_if_due(self) -> bool:
        source = self.source
        if source.next_read_at is None or source.next_read_at > timezone.now():
            return False
        if self._reading is None or self._reading.columns != columns(source):
            self._reading = reading.begin(source, self.table)
        self._reading.source = source
        more = reading.step(self._reading)
        if not more:
            self._reading = None
            Source.objects.filter(pk=source.pk).update(next_tell_at=timezone.now())
        return True


def serve(source_id: int, *, lease: int, rng: Random, seconds: float = SHIFT_SECONDS) -> int:
    """Work on a source that this worker has; return how many steps were done."""
    source = Source.objects.select_related("queue__owner").filter(pk=source_id, lease=lease).first()
    if source is None:
        return 0
    steps = 0
    try:
        with on_behalf_of(source.owner_id):
            steps = _work(source, lease, seconds)
    except TroubleError as trouble:
        _note_trouble(source, trouble, rng)
    except NotPossibleError as error:  # the queue takes nothing: it is archived, or has no account
        _note_trouble(source, TroubleError(str(error)), rng)
    except Exception:
        _note_trouble(source, TroubleError("Something went wrong on our side. The log has the details."), rng)
        raise
    finally:
        Source.objects.filter(pk=source_id, lease=lease).update(busy_until=None, served_at=timezone.now())
    return steps


def _work(source: Source, lease: int, seconds: float) -> int:
    until, table = time.monotonic() + seconds, opened(source)
    try:
        shift = Shift(source, table, lease=lease)
        while time.monotonic() < until and shift.step():
            pass
        if shift.steps:
            Source.objects.filter(pk=source.pk, lease=lease).update(
                failing_since=None, failures=0, trouble=""
            )
        return shift.steps
    finally:
        table.close()


def _note_trouble(source: Source, trouble: TroubleError, rng: Random) -> None:
    """Write down what went wrong, and when to ask again. A read in progress stays where it is."""
    source.refresh_from_db()
    if isinstance(trouble, StoppedError):
        stop(source, str(trouble))
        return
    now = timezone.now()
    source.trouble = str(trouble)[:500]
    if isinstance(trouble, WaitError):
        source.retry_at = now + timedelta(seconds=trouble.seconds)
    else:
        source.failures += 1
        source.failing_since = source.failing_since or now
        pause = PAUSES[min(source.failures, len(PAUSES)) - 1]
        source.retry_at = now + timedelta(seconds=pause * rng.uniform(1 - JITTER, 1 + JITTER))
    source.save(update_fields=["trouble", "retry_at", "failures", "failing_since"])
    log.info("source_waits", source=source.pk, why=source.trouble)
    if source.failing_since is not None and now - source.failing_since >= TOLD_AFTER:
        _tell_owner(source, "A source cannot be read", source.trouble, f"{source.failing_since:%Y%m%d%H%M%S}")


def stop(source: Source, why: str) -> None:
    """Stop a source until a person did what it needs, and tell its owner once. Nothing is withdrawn."""
    now = timezone.now()
    reading.fail(source, why)
    Source.objects.filter(pk=source.pk).update(stopped_at=now, stopped_why=why[:500])
    log.warning("source_stopped", source=source.pk, why=why)
    _tell_owner(source, "A source has stopped", why, f"{now:%Y%m%d%H%M%S%f}")


def _tell_owner(source: Source, title: str, why: str, moment: str) -> None:
    notify(
        source.owner_id,
        Notification.Kind.ACCOUNT,
        key=f"source:{source.pk}:{moment}",
        title=title,
        body=f"{source.get_kind_display()}, “{source.title}”: {why}",
        url=f"/sources/{source.pk}/",
    )
