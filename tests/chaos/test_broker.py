"""Redis is silent, full, cannot save or is a replica: everybody waits, nobody ends, and all goes on by itself."""

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from tests.chaos import programs
from tests.chaos.evidence import part_keys
from tests.chaos.lab import Lab
from tests.chaos.operator import Operator
from tests.chaos.proxy import Proxy

TARGETS = 60
LIMITS = {"per_minute": 600}
ANSWERS_WITHIN = 20.0  # seconds; a page or command, on a machine that is busy with other things
GOES_ON_WITHIN = 45.0


@contextmanager
def full(lab: Lab) -> Iterator[None]:
    """Out of memory: no write is taken."""
    with lab.redis() as redis:
        redis.config_set("maxmemory-policy", "noeviction")
        redis.config_set("maxmemory", 1)
        yield
        redis.config_set("maxmemory", 0)


@contextmanager
def unable_to_save(lab: Lab) -> Iterator[None]:
    """MISCONF: its snapshot cannot be written, so it takes no write."""
    in_the_way = lab.servers.redis.data / "dump.rdb"
    in_the_way.unlink(missing_ok=True)
    in_the_way.mkdir()
    with lab.redis() as redis:
        redis.config_set("save", "3600 1")
        redis.bgsave()
        lab.until(
            lambda: redis.info("persistence")["rdb_last_bgsave_status"] == "err", "the snapshot fails", 30
        )
        yield
        in_the_way.rmdir()
        redis.bgsave()
        lab.until(
            lambda: redis.info("persistence")["rdb_last_bgsave_status"] == "ok", "the snapshot is written", 30
        )
        redis.config_set("save", "")


@contextmanager
def replica(lab: Lab) -> Iterator[None]:
    """READONLY, as after a failover that left the address where it was."""
    with lab.redis() as redis:
        redis.replicaof("127.0.0.1", "1")
        yield
        redis.replicaof("NO", "ONE")


@pytest.mark.parametrize("trouble", [full, unable_to_save, replica])
def test_a_redis_that_takes_no_writes_ends_no_worker_and_doubles_nothing(
    lab: Lab, trouble: Callable[[Lab], AbstractContextManager[None]]
) -> None:
    lab.want_workers(2)
    lab.want_beats(1)
    sender = lab.add_account(limits=LIMITS, idempotent=False, latency_ms=50)
    run = lab.operator.fire(sender.id, targets=TARGETS)
    lab.delivered(sender, 5)

    with trouble(lab):
        time.sleep(10)
        assert all(program.running for program in [*lab.workers, *lab.beats])

    found = lab.settled(run)
    assert all(program.running for program in [*lab.workers, *lab.beats])
    assert (found.status, found.unconfirmed) == ("success", 0)
    assert sender.seen.arrivals() == dict.fromkeys(part_keys(lab.operator.targets(run)), 1)


@pytest.mark.parametrize("trouble", [full, replica])
def test_a_worker_that_starts_while_redis_takes_no_writes_waits_for_it(
    lab: Lab, trouble: Callable[[Lab], AbstractContextManager[None]]
) -> None:
    lab.kill_workers()
    sender = lab.add_account(limits=LIMITS, idempotent=False)
    run = lab.operator.fire(sender.id, targets=5)

    with trouble(lab):
        worker = programs.worker("patient", threads=8, env=lab.env, folder=lab.servers.home)
        lab.adopt(worker)
        time.sleep(15)
        assert worker.running, worker.said()

    assert lab.settled(run).status == "success"
    assert sender.seen.arrivals() == dict.fromkeys(part_keys(lab.operator.targets(run)), 1)


@pytest.fixture
def proxy(lab: Lab) -> Iterator[Proxy]:
    """The lab's Redis behind a port that can fall silent, for workers and beat too."""
    made = Proxy(lambda: _connected(str(lab.servers.redis.socket)))
    yield made
    made.close()


def _connected(path: str) -> socket.socket:
    made = socket.socket(socket.AF_UNIX)
    made.connect(path)
    return made


def test_a_silent_redis_delays_a_start_by_seconds_and_all_goes_on_after_it(lab: Lab, proxy: Proxy) -> None:
    lab.kill_workers()
    lab.kill_beats()
    env = lab.env | {"REDIS_URL": f"redis://127.0.0.1:{proxy.port}/0"}
    worker = programs.worker("behind", threads=16, env=env, folder=lab.servers.home)
    beat = programs.beat("beat-behind", env=env, folder=lab.servers.home)
    lab.adopt(worker)
    lab.adopt(beat)
    person = Operator(env)
    try:
        sender = lab.add_account(limits=LIMITS, idempotent=False, latency_ms=50)
        first = person.fire(sender.id, targets=TARGETS)
        lab.delivered(sender, 5)

        proxy.swallow()
        asked = time.monotonic()
        second = person.fire(sender.id, targets=5)
        assert time.monotonic() - asked < ANSWERS_WITHIN
        time.sleep(20)  # long enough for pauses that grow to have grown
        assert worker.running
        assert beat.running
        proxy.heal()

        for run in (first, second):
            found = lab.settled(run, seconds=GOES_ON_WITHIN)
            assert (found.status, found.unconfirmed) == ("success", 0)
            arrived = sender.seen.arrivals()
            assert [arrived[key] for key in part_keys(lab.operator.targets(run))] == [1] * found.total
    finally:
        person.leave()
        for program in (worker, beat):
            program.kill()
        lab.want_beats(1)
