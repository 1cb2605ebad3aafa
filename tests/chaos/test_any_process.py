"""Any process killed at any moment, all of them in turn and again: nothing is lost, nothing is doubled (DESIGN)."""

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from tests.chaos.evidence import MINUTE, part_keys
from tests.chaos.lab import Lab, Sender

BEHAVIOUR: Mapping[str, Any] = {"latency_ms": 100, "jitter_ms": 150}
PER_MINUTE = 240
TARGETS = 60  # of a run; when it is nearly through, the next one is fired
LEFT = 20


class Senders:
    """Accounts that always have something to send, and all that they were asked to."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        limits = {"per_minute": PER_MINUTE}
        self.safe = [lab.add_account(limits=limits, **BEHAVIOUR) for _ in range(2)]
        self.doubtful = [lab.add_account(limits=limits, idempotent=False, **BEHAVIOUR) for _ in range(2)]
        self.runs: dict[int, list[int]] = {sender.id: [] for sender in self.all}

    @property
    def all(self) -> list[Sender]:
        return [*self.safe, *self.doubtful]

    def busy(self) -> bool:
        """Give more messages to each account that would soon have none."""
        for sender in self.all:
            runs = self.runs[sender.id]
            if not runs or self.lab.operator.run(runs[-1]).pending < LEFT:
                runs.append(self.lab.operator.fire(sender.id, targets=TARGETS))
        return True

    def behave_again(self) -> None:
        """A gateway that was started again has forgotten how to."""
        for sender in self.all:
            self.lab.gateway.behave(sender.name, idempotent=sender in self.safe, **BEHAVIOUR)


def kill_one_worker(lab: Lab, senders: Senders, dice: random.Random) -> None:
    lab.kill(dice.choice(lab.workers))


def kill_all_workers(lab: Lab, senders: Senders, dice: random.Random) -> None:
    lab.kill_workers()


def kill_beat(lab: Lab, senders: Senders, dice: random.Random) -> None:
    lab.kill_beats()


def kill_redis(lab: Lab, senders: Senders, dice: random.Random) -> None:
    lab.servers.kill_redis()
    if dice.random() < 0.5:
        lab.servers.lose_redis_data()
    time.sleep(dice.random())
    lab.servers.redis.start()


def kill_postgres(lab: Lab, senders: Senders, dice: random.Random) -> None:
    lab.servers.crash_postgres()
    time.sleep(dice.random())
    lab.servers.postgres.start()


def kill_gateway(lab: Lab, senders: Senders, dice: random.Random) -> None:
    lab.gateway.kill()
    time.sleep(dice.random() * 0.5)
    lab.gateway.start()
    senders.behave_again()


VICTIMS: tuple[Callable[[Lab, Senders, random.Random], None], ...] = (
    kill_one_worker,
    kill_all_workers,
    kill_beat,
    kill_redis,
    kill_postgres,
    kill_gateway,
)


def kill_any(lab: Lab, senders: Senders, *, kills: int, seed: int) -> Counter[str]:
    """Kill processes in the middle of sending, each kind as often as any other; who was, how often."""
    dice = random.Random(seed)
    killed: Counter[str] = Counter()
    for number in range(kills):
        lab.want_workers(2)
        lab.want_beats(1)
        lab.until(senders.busy, "all have something to send")
        lab.asked(senders.all, dice.randint(1, 8))
        time.sleep(dice.random() * 0.5)
        victim = VICTIMS[number % len(VICTIMS)]
        victim(lab, senders, dice)
        killed[victim.__name__] += 1
    lab.want_workers(2)
    lab.want_beats(1)
    return killed


def check(lab: Lab, senders: Senders) -> Counter[str]:
    """Check every message, by the gateway's log and by the database."""
    became: Counter[str] = Counter()
    for sender in senders.all:
        targets = []
        for run in senders.runs[sender.id]:
            found = lab.settled(run, seconds=180)
            assert found.sent + found.unconfirmed == found.total
            assert sender not in senders.safe or found.status == "success"
            became += Counter(sent=found.sent, unconfirmed=found.unconfirmed)
            targets += lab.operator.targets(run)
        arrived = sender.seen.arrivals()
        assert max(arrived.values()) == 1, "something arrived twice"
        assert arrived.keys() <= set(part_keys(targets))
        assert all(f"{target.key}-0" in arrived for target in targets if target.status == "sent")
        assert sender not in senders.safe or len(arrived) == len(targets), "something is lost"
        assert sender.seen.worst(MINUTE) <= PER_MINUTE
    return became


@pytest.fixture
def one_beat_afterwards(lab: Lab) -> Iterator[None]:
    """The other tests count on it."""
    yield
    lab.want_beats(1)


@pytest.mark.soak
@pytest.mark.usefixtures("one_beat_afterwards")
def test_a_hundred_kills_of_any_process_lose_nothing_and_double_nothing(lab: Lab) -> None:
    senders = Senders(lab)
    killed = kill_any(lab, senders, kills=100, seed=3)
    became = check(lab, senders)
    assert became["unconfirmed"] > 0, "no kill hit a message in the air, so this proved nothing"
    print(f"{dict(killed)}: {dict(became)}")  # noqa: T201 - for docs/chaos.md
