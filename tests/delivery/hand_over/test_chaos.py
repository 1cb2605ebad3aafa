"""Handing over again and again while real pumps send: nothing is sent twice, and no limit is crossed."""

import random
import threading
import time
from collections import Counter
from contextlib import suppress

import pytest
from django.db import connection
from pytest_django import Settings

from accounts.models import Account
from delivery import lifecycle
from delivery.engine import pump
from delivery.hand_over.move import hand_over
from delivery.hand_over.split import Wish
from delivery.lifecycle import WrongStateError
from delivery.models import Run, RunTarget
from delivery.states import SETTLED_RUN, AccountStatus
from tests.delivery.engine.test_storm import Storm
from tests.delivery.stage import Stage, add_up

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis")]


class HandingOver(Storm):
    """A storm in which everything is handed over all the time, and nobody opts out."""

    def opt_out(self) -> None:
        run = Run.objects.get(pk=self.dice.choice(self.runs).pk)
        to = self.dice.sample([account.pk for account in self.accounts], self.dice.choice([1, 2]))
        hand_over(run, Wish(to=to, known=self.dice.random() < 0.5))
        time.sleep(self.dice.random() * 0.05)


def rage(stage: Stage, quick: Settings, *, seconds: float, seed: int) -> None:
    quick.PUMP_SECONDS = 0.5
    quick.LEASE_SECONDS = 2
    quick.SEND_TIMEOUT_SECONDS = 1
    storm = HandingOver(stage, seconds=seconds, seed=seed)
    storm.rage()
    assert not storm.errors
    storm.calm_down()
    for run in storm.runs:
        add_up(run)
        assert run.status in SETTLED_RUN or run.sending, f"{run.status}: {run.summary}"
    arrived = Counter(line["key"] for line in stage.delivered(*storm.accounts))
    assert max(arrived.values()) == 1
    assert {line["account"] for line in stage.delivered(*storm.accounts)} == {
        account.credentials["account"] for account in storm.accounts
    }


def test_nothing_is_sent_twice_while_runs_are_handed_over(stage: Stage, quick: Settings) -> None:
    rage(stage, quick, seconds=6, seed=1)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2, 6))
def test_nor_in_long_storms(stage: Stage, quick: Settings, seed: int) -> None:
    rage(stage, quick, seconds=45, seed=seed)


def test_no_limit_is_crossed_by_handing_over(stage: Stage, quick: Settings) -> None:
    quick.PUMP_SECONDS = 0.3
    accounts = [stage.account(limits={"per_day": 12, "new_per_day": 9}) for _ in range(3)]
    run, dice = stage.fire(accounts[0], to=40), random.Random(7)
    ends = time.monotonic() + 6

    def send(account: Account) -> None:
        while time.monotonic() < ends:
            pump.pump(account.pk)
            connection.close()
            time.sleep(0.02)

    threads = [threading.Thread(target=send, args=(account,)) for account in accounts]
    for thread in threads:
        thread.start()
    while time.monotonic() < ends:
        with suppress(WrongStateError):
            hand_over(run, Wish(to=[dice.choice(accounts).pk], known=True))
        time.sleep(0.05)
    for thread in threads:
        thread.join()
    counts = [len(stage.received(account)) for account in accounts]
    assert max(counts) <= 9
    assert sum(counts) > 9  # more than one account could have sent
    add_up(run)


def test_what_is_in_doubt_under_a_key_is_never_sent_by_another_account(stage: Stage, quick: Settings) -> None:
    first, second = stage.account(), stage.account()
    stage.behave(first, cut=1.0)
    run = stage.fire(first, to=6)
    pump.pump(first.pk)
    tried = {line["key"] for line in stage.received(first)}
    assert tried
    lifecycle.stop_account(first, status=AccountStatus.FLAGGED, reason="blocked")
    with suppress(WrongStateError):  # where all six were tried
        hand_over(run, Wish(to=[second.pk], known=True))
    pump.pump(second.pk)
    assert not tried & {line["key"] for line in stage.received(second)}
    assert RunTarget.objects.filter(run=run, account=first).count() == len(tried)
