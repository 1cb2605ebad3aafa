"""Everybody at once: pumps, people, recipients, the tick and a forgetful Redis, in threads of their own.

What the machine of `test_run_machine.py` does one after the other happens here at the same time: nothing may
deadlock, arrive twice, be miscounted or be left behind.
"""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable

import pytest
from django.db import connection
from pytest_django import Settings

from accounts.models import Account
from accounts.recipients import consent
from config.redis.client import client
from delivery import lifecycle
from delivery.engine import pump
from delivery.engine.lease import lease_key
from delivery.engine.tick import tick
from delivery.lifecycle import WrongStateError
from delivery.models import Run, RunTarget
from delivery.states import SETTLED_RUN, PauseReason, RunStatus, TargetStatus
from tests.delivery.stage import Stage, add_up

RUNS = 4


class Storm:
    """Two accounts, runs that both of them serve, and those who trouble them."""

    def __init__(self, stage: Stage, *, seconds: float, seed: int) -> None:
        self.stage = stage
        self.dice = random.Random(seed)
        self.ends = time.monotonic() + seconds
        self.accounts = [stage.account(idempotent=False, group_concurrency=3) for _ in range(2)]
        for account in self.accounts:
            stage.behave(account, latency_ms=5, jitter_ms=20, error_rate=0.1)
        self.runs = [stage.fire(*self.accounts, to=40, parts=1 + number % 2) for number in range(RUNS)]
        self.errors: list[BaseException] = []

    def rage(self) -> None:
        pumps = [lambda pk=account.pk: pump.pump(pk) for account in self.accounts for _ in range(2)]
        everybody = [*pumps, self.steer, self.steer, self.stop_or_start, self.opt_out, self.forget, tick]
        threads = [threading.Thread(target=self._again_and_again, args=(do,)) for do in everybody]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def steer(self) -> None:
        run = Run.objects.get(pk=self.dice.choice(self.runs).pk)
        moves: list[Callable[[Run], object]] = [
            lambda run: lifecycle.pause(run, reason=PauseReason.OPERATOR),
            lifecycle.resume,
            lifecycle.resume,
            lifecycle.retry_failed,
        ]
        self.dice.choice(moves)(run)
        time.sleep(self.dice.random() * 0.05)

    def stop_or_start(self) -> None:
        account = self.dice.choice(self.accounts)
        lifecycle.stop_account(account, status=Account.Status.OFFLINE, reason="no answer")
        time.sleep(self.dice.random() * 0.1)
        lifecycle.start_account(account)
        time.sleep(self.dice.random() * 0.4)

    def opt_out(self) -> None:
        target = RunTarget.objects.filter(status=TargetStatus.PENDING).order_by("?").first()
        if target is not None:
            consent.opt_out(target.recipient, how="Wrote STOP.")
        time.sleep(0.3)

    def forget(self) -> None:
        """Redis loses everything, or one lease: then two pumps of an account are at work in this process."""
        time.sleep(0.2 + self.dice.random())
        if self.dice.random() < 0.5:
            client().flushdb()
        else:
            client().delete(*(lease_key(account.pk) for account in self.accounts))

    def _again_and_again(self, do: Callable[[], object]) -> None:
        while time.monotonic() < self.ends and not self.errors:
            try:
                do()
            except WrongStateError:
                pass
            except BaseException as error:
                self.errors.append(error)
                raise
            finally:
                connection.close()
            time.sleep(0.01)

    def calm_down(self) -> None:
        """End all trouble, and wait until every run has ended."""
        for account in self.accounts:
            self.stage.behave(account, error_rate=0)
        for _ in range(20):
            for account in self.accounts:
                lifecycle.start_account(account)
            for run in Run.objects.filter(status=RunStatus.PAUSED):
                lifecycle.resume(run)
            for account in Account.objects.filter(wake_at__isnull=False):
                pump.pump(account.pk)


def rage(stage: Stage, quick: Settings, *, seconds: float, seed: int) -> None:
    quick.PUMP_SECONDS = 0.5
    quick.LEASE_SECONDS = 2
    quick.SEND_TIMEOUT_SECONDS = 1
    storm = Storm(stage, seconds=seconds, seed=seed)
    storm.rage()
    assert not storm.errors
    storm.calm_down()
    for run in storm.runs:
        add_up(run)
        assert run.status in SETTLED_RUN or run.sending, f"{run.status}: {run.summary}"
    arrived = Counter(line["key"] for line in stage.delivered(*storm.accounts))
    assert max(arrived.values()) == 1


def test_nothing_is_doubled_lost_or_miscounted_when_all_happens_at_once(
    stage: Stage, quick: Settings
) -> None:
    rage(stage, quick, seconds=6, seed=1)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2, 6))
def test_long_storms_do_no_harm_either(stage: Stage, quick: Settings, seed: int) -> None:
    rage(stage, quick, seconds=45, seed=seed)
