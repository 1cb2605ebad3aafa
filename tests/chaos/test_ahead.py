"""Paced accounts take permits and targets a minute ahead, and begin each message a moment before it leaves.

Whatever happens in between: nothing leaves twice, over a limit, after a pause or to somebody who has opted out.
"""

import time
from collections.abc import Callable
from random import Random

import pytest

from tests.chaos.evidence import MINUTE, part_keys
from tests.chaos.lab import Lab, Sender
from tests.chaos.programs import Program

AS_IN_USE = {"PUMP_SECONDS": "300", "HORIZON_SECONDS": "60"}
PER_MINUTE = 80
TARGETS = 60
TAKES_HOLD = 2000  # milliseconds; leave to send counts for one of them, and a busy machine is slow


class Trouble:
    """Breaks one thing after the other while accounts send, and remembers what must not arrive any more."""

    def __init__(self, lab: Lab, senders: list[Sender], runs: list[int]) -> None:
        self.lab = lab
        self.senders = senders
        self.runs = runs
        self.rng = Random(11)
        self.held: list[tuple[Sender, int, int]] = []  # between these moments nothing may arrive
        self.gone: list[tuple[str, int]] = []  # to this address nothing may arrive from then on

    def any(self) -> None:
        kinds: list[Callable[[], None]] = [
            self.forget,
            self.freeze,
            self.kill,
            self.pause,
            self.pause,
            self.opt_out,
        ]
        self.rng.choice(kinds)()

    def forget(self) -> None:
        with self.lab.redis() as redis:
            redis.flushall()
        for sender in self.senders:
            self.lab.operator.send_pumps(sender.id, times=2)

    def freeze(self) -> None:
        worker = self._worker()
        worker.freeze()
        time.sleep(self.rng.uniform(0.3, 5))
        worker.thaw()

    def kill(self) -> None:
        self.lab.kill(self._worker())
        self.lab.start_worker(timings=AS_IN_USE)

    def pause(self) -> None:
        paused = [
            each for each in range(len(self.runs)) if self.rng.random() < 0.5 and self._pause(self.runs[each])
        ]
        since = _now() + TAKES_HOLD
        time.sleep(TAKES_HOLD / 1000 + self.rng.uniform(0.5, 2))
        until = _now()
        for each in paused:
            self.held.append((self.senders[each], since, until))
            if (
                self.lab.operator.run(self.runs[each]).status == "paused"
            ):  # unless its last message was under way
                self.lab.operator.resume(self.runs[each])

    def opt_out(self) -> None:
        run = self.rng.choice(self.runs)
        addresses = self.lab.operator.opt_out(run, count=2)
        self.gone += [(address, _now() + TAKES_HOLD) for address in addresses]

    def _pause(self, run: int) -> bool:
        if self.lab.operator.run(run).status != "running":
            return False
        self.lab.operator.pause(run)
        return True

    def _worker(self) -> Program:
        return self.rng.choice(self.lab.workers)


def rage(lab: Lab, *, accounts: int, targets: int, rounds: int) -> None:
    lab.kill_workers()
    for _ in range(2):
        lab.start_worker(timings=AS_IN_USE)
    senders = [
        lab.add_account(idempotent=False, limits={"per_minute": PER_MINUTE}, latency_ms=100, jitter_ms=100)
        for _ in range(accounts)
    ]
    trouble = Trouble(lab, senders, [lab.operator.fire(sender.id, targets=targets) for sender in senders])
    for _ in range(rounds):
        time.sleep(trouble.rng.uniform(0.5, 2))
        trouble.any()
    for sender, run in zip(senders, trouble.runs, strict=True):
        _look_at(lab, sender, run)
    for sender, since, until in trouble.held:
        assert [line for line in sender.seen.received() if since < line["at"] < until] == []
    for address, since in trouble.gone:
        late = [line for each in senders for line in each.seen.received() if line["to"] == address]
        assert all(line["at"] < since for line in late)
    lab.kill_workers()


def _look_at(lab: Lab, sender: Sender, run: int) -> None:
    found = lab.settled(run, seconds=600)
    assert found.sent + found.unconfirmed + found.skipped == found.total
    sent = [each for each in lab.operator.targets(run) if each.status == "sent"]
    assert set(part_keys(sent)) <= set(sender.seen.arrivals())
    assert max(sender.seen.arrivals().values()) == 1
    assert sender.seen.worst(MINUTE) <= PER_MINUTE


def _now() -> int:
    return int(time.time() * 1000)


def test_what_is_taken_ahead_does_no_harm_when_anything_happens(lab: Lab) -> None:
    rage(lab, accounts=6, targets=40, rounds=12)


@pytest.mark.soak
def test_what_is_taken_ahead_does_no_harm_for_minutes(lab: Lab) -> None:
    rage(lab, accounts=10, targets=150, rounds=40)
