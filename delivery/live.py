"""Sends live events (`run.changed` and `account.changed`) to the open pages.

Each run is announced at most twice a second over all processes, and always once after its last change. Delivery is
at most once; pages read the state again when they connect.
"""

import threading
import time
from collections import deque
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, NamedTuple

import structlog
from channels.layers import get_channel_layer
from django.conf import settings
from django.db import connection

from config.redis.client import client
from config.redis.live_layer import TROUBLE
from delivery.engine.loop import send_loop
from delivery.models import Run
from delivery.states import RunStatus

log = structlog.get_logger(__name__)

EVERY_MS = 500
RATE_OVER = 60.0  # seconds


def run_group(run_id: int) -> str:
    return f"run-{run_id}"


def owner_group(owner_id: int) -> str:
    return f"owner-{owner_id}"


def run_changed(run_id: int, owner_id: int) -> None:
    """Announce the change of a run to the open pages, within half a second."""
    _announcer().changed("run", run_id, owner_id)


def account_changed(account_id: int, owner_id: int) -> None:
    _announcer().changed("account", account_id, owner_id)


def flush() -> None:
    """Send the changes that are not announced yet; for programs that end."""
    _announcer().flush()


def snapshot(run: Run, rate: float = 0.0) -> dict[str, Any]:
    """Return the numbers and sentences of a run that a page shows."""
    finish = _finish(run, rate)
    return {
        "run": run.pk,
        "status": run.status,
        "shown": run.shown_status,
        "canceling": run.being_canceled,  # for pages of the release before
        "reason": run.pause_reason,
        "summary": run.summary,
        "sent": run.sent,
        "returned": run.returned,
        "failed": run.failed,
        "skipped": run.skipped,
        "left_out": run.left_out,
        "unconfirmed": run.unconfirmed,
        "pending": run.pending + run.sending,
        "sending": run.sending,
        "total": run.total,
        "expected": run.expected,
        "rate": round(rate, 1),
        "finish_at": finish.isoformat() if finish else None,
    }


def _finish(run: Run, rate: float) -> datetime | None:
    """Return when the run ends at its present rate; None where its window closes before that."""
    if run.status != RunStatus.RUNNING or rate <= 0:
        return None
    finish = datetime.now(UTC) + timedelta(minutes=(run.pending + run.sending) / rate)
    closes = None if run.around_the_clock else run.closes_at
    return finish if closes is None or finish <= closes else None


class Change(NamedTuple):
    """A changed run or account that a page may be watching."""

    kind: Literal["run", "account"]
    pk: int
    owner_id: int

    @property
    def groups(self) -> list[str]:
        owner = owner_group(self.owner_id)
        return [run_group(self.pk), owner] if self.kind == "run" else [owner]


class Announcer:
    """Collects changes and announces them, at most twice a second, from a thread of its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._changes: set[Change] = set()
        self._history: dict[int, deque[tuple[float, int]]] = {}
        self._changed = threading.Event()
        self._busy = False
        threading.Thread(target=self._work, name="announcer", daemon=True).start()

    def changed(self, kind: Literal["run", "account"], pk: int, owner_id: int) -> None:
        with self._lock:
            self._changes.add(Change(kind=kind, pk=pk, owner_id=owner_id))
        self._changed.set()

    def flush(self, patience: float = 2.0) -> None:
        deadline = time.monotonic() + patience
        while (self._changed.is_set() or self._busy) and time.monotonic() < deadline:
            time.sleep(0.05)

    def _work(self) -> None:
        while True:
            self._changed.wait()
            self._busy = True
            try:
                self._announce()
            except TROUBLE as error:
                log.warning("announce_delayed", error=str(error))
            except Exception:  # one failed announcement must not end the thread
                log.exception("announce_failed")
            finally:
                self._busy = False
                connection.close()
            time.sleep(EVERY_MS / 1000)

    def _announce(self) -> None:
        """Announce the changes that pages watch; keep those that are announced too soon, or cannot be, for later."""
        with self._lock:
            changes, self._changes = self._changes, set()
            self._changed.clear()
        try:
            self._keep(self._announce_some(changes))
        except TROUBLE:
            self._keep(changes)
            raise

    def _announce_some(self, changes: set[Change]) -> set[Change]:
        """Announce the changes that were not announced within the last half second; return the others."""
        ready, later = _sift(sorted(changes))
        runs = Run.objects.defer("parts").in_bulk([each.pk for each in ready if each.kind == "run"])
        for each in ready:
            if each.kind == "run" and each.pk not in runs:
                continue  # deleted meanwhile
            body = self._run_body(runs[each.pk]) if each.kind == "run" else {"account": each.pk}
            for group in each.groups:
                send_loop().start(_send(group, {"type": f"{each.kind}.changed", **body})).result(timeout=5)
        return later

    def _keep(self, changes: set[Change]) -> None:
        if changes:
            with self._lock:
                self._changes |= changes
            self._changed.set()

    def _run_body(self, run: Run) -> dict[str, Any]:
        return snapshot(run, self._rate(run))

    def _rate(self, run: Run) -> float:
        """Return the targets per minute over the last minute."""
        history = self._history.setdefault(run.pk, deque())
        history.append((time.monotonic(), run.sent))
        while len(history) > 2 and history[1][0] < time.monotonic() - RATE_OVER:
            history.popleft()
        if run.status != RunStatus.RUNNING:
            self._history.pop(run.pk, None)
        (first_at, first), (last_at, last) = history[0], history[-1]
        return (last - first) * 60 / (last_at - first_at) if last_at > first_at else 0.0


def _sift(changes: list[Change]) -> tuple[list[Change], set[Change]]:
    """Divide changes into those to announce now and those to announce later, in a few round trips for any number."""
    watched = _watched(changes)
    gate = client().pipeline(transaction=False)
    for each in watched:
        gate.set(f"paceline:told:{each.kind}:{each.pk}", 1, nx=True, px=EVERY_MS - 20)
    opened = gate.execute()
    ready = [each for each, free in zip(watched, opened, strict=True) if free]
    return ready, set(watched) - set(ready)


def _watched(changes: list[Change]) -> list[Change]:
    """Return the changes that pages watch. Mostly none does: one question about all of them is enough then."""
    keys = {each: [f"{settings.LIVE_PREFIX}:group:{group}" for group in each.groups] for each in changes}
    if not keys or not client().exists(*{key for own in keys.values() for key in own}):
        return []
    watching = client().pipeline(transaction=False)
    for own in keys.values():
        watching.exists(*own)
    return [each for each, found in zip(changes, watching.execute(), strict=True) if found]


async def _send(group: str, event: dict[str, Any]) -> None:
    layer = get_channel_layer()
    if layer is not None:
        await layer.group_send(group, event)


_one: Announcer | None = None
_one_lock = threading.Lock()


def _announcer() -> Announcer:
    global _one  # noqa: PLW0603 - one per process
    with _one_lock:
        if _one is None:
            _one = Announcer()
        return _one
