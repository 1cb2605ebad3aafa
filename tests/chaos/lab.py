"""Runs all of Paceline on separate servers, with a gateway: the tests of this folder break its parts."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from redis import Redis

from activity.heartbeats import WORKER_KEY
from sandbox.process import SandboxProcess
from tests.chaos import programs
from tests.chaos.evidence import Evidence
from tests.chaos.island import Island
from tests.chaos.operator import DriverError, Operator, RunView
from tests.chaos.programs import PROJECT, Program
from tests.chaos.servers import Servers

LIVENESS = 90.0  # seconds; a claim that something happens by itself, not how fast
FAST: Mapping[str, float] = {"per_minute": 3000}

# Small, so that what takes minutes for an operator takes seconds here.
TIMINGS = {
    "TICK_SECONDS": "1",
    "LEASE_SECONDS": "3",
    "SEND_TIMEOUT_SECONDS": "2",
    "CONNECT_TIMEOUT_SECONDS": "1",
    "PUMP_SECONDS": "10",
    "BACKOFF_BASE_SECONDS": "0.5",
    "RATE_LIMITED_SECONDS": "2",
    "NOT_CONNECTED_SECONDS": "1",
    "RECONNECT_RAMP_MINUTES": "0",  # what is slow after an outage would hide what is lost in it
    "TROUBLE_WAIT_MAX_MINUTES": "0.1",
    "TROUBLE_OFFLINE_MINUTES": "0.1",
    "PART_GAP_MIN_MS": "50",
    "PART_GAP_MAX_MS": "100",
}


NO_OTHERS: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    """An account, under its number here and its name at the gateway."""

    id: int
    name: str
    seen: Evidence


class Lab:
    """Starts everything once; tests use accounts of their own, so that none sees another's messages."""

    def __init__(self) -> None:
        self.servers = Servers()
        self.workers: list[Program] = []
        self.beats: list[Program] = []
        self._programs: list[Program] = []
        self._adopted: list[Program] = []
        self._named = 0
        try:
            self._start()
        except BaseException:
            self.end()
            raise

    def _start(self) -> None:
        self.servers.start()
        self.env = environment(self.servers)
        subprocess.run([sys.executable, "manage.py", "migrate", "-v0"], cwd=PROJECT, env=self.env, check=True)
        self.gateway = SandboxProcess(self.servers.home / "sandbox.jsonl")
        self.operator = Operator(self.env)
        self.start_beat()

    def end(self) -> None:
        for program in self._programs:
            program.kill()
        if hasattr(self, "operator"):
            self.operator.leave()
        if hasattr(self, "gateway"):
            self.gateway.kill()
        self.servers.remove()

    # Beat.

    def start_beat(self) -> None:
        """One more of them."""
        beat = programs.beat(self._new_name("beat"), env=self.env, folder=self.servers.home)
        self.beats.append(beat)
        self._programs.append(beat)

    def kill_beats(self) -> None:
        while self.beats:
            self.beats.pop().kill()

    def want_beats(self, count: int) -> None:
        self.beats = [beat for beat in self.beats if beat.running]
        while len(self.beats) > count:
            self.beats.pop().kill()
        while len(self.beats) < count:
            self.start_beat()

    # Workers.

    def start_worker(
        self,
        *,
        threads: int = 16,
        share: str = "1/1",
        island: Island | None = None,
        timings: Mapping[str, str] = NO_OTHERS,
    ) -> Program:
        """A worker that consumes the queues of its share, on this host or on an island, with timings of its own."""
        name = self._new_name("worker")
        env = self.env | {"ACCOUNT_SHARE": share, **timings} | (island.env if island else {})
        prefix = island.prefix if island else ()
        worker = programs.worker(name, threads=threads, env=env, folder=self.servers.home, prefix=prefix)
        self.workers.append(worker)
        self._programs.append(worker)
        with self.redis() as redis:
            self.until(
                lambda: redis.hexists(WORKER_KEY, f"{name}@chaos") or not worker.running, f"{name} is ready"
            )
        assert worker.running, worker.said()
        return worker

    def adopt(self, program: Program) -> None:
        """Show what a program said if the test fails, and end it with the test."""
        self._programs.append(program)
        self._adopted.append(program)

    def end_adopted(self) -> None:
        """End what the last test started by itself: such a worker would serve the accounts of the next test."""
        while self._adopted:
            self._adopted.pop().kill()

    def strangers(self) -> list[str]:
        """Name the adopted programs that still run."""
        return [program.name for program in self._adopted if program.running]

    def want_workers(self, count: int) -> None:
        """Exactly so many, each serving all accounts; those of the test before go on if they still run."""
        self.workers = [worker for worker in self.workers if worker.running]
        for worker in self.workers[count:]:
            self.kill(worker)
        while len(self.workers) < count:
            self.start_worker()

    def kill(self, worker: Program) -> None:
        worker.kill()
        self.workers.remove(worker)

    def kill_workers(self) -> None:
        for worker in list(self.workers):
            self.kill(worker)

    # Accounts, runs, the gateway.

    def add_account(
        self,
        *,
        idempotent: bool = True,
        group_concurrency: int = 3,
        limits: Mapping[str, float] = FAST,
        url: str = "",
        **behaviour: object,
    ) -> Sender:
        """An account here and at the gateway, which treats it as `behaviour` says."""
        name = self._new_name("account")
        self.gateway.behave(name, idempotent=idempotent, **behaviour)
        number = self.operator.add_account(
            name,
            url=url or self.gateway.url,
            idempotent=idempotent,
            group_concurrency=group_concurrency,
            limits=limits,
        )
        return Sender(id=number, name=name, seen=Evidence(self.gateway.log, name))

    def redis(self) -> Redis:
        return Redis.from_url(self.servers.redis.url)

    def settled(self, run: int, seconds: float = LIVENESS) -> RunView:
        """The run once it has settled by itself."""
        self.until(lambda: self.operator.run(run).settled, f"run {run} settles", seconds)
        return self.operator.run(run)

    def delivered(self, sender: Sender, count: int) -> None:
        """Wait until so many messages of an account have arrived."""
        self.until(lambda: len(sender.seen.delivered()) >= count, f"{count} messages arrive")

    def asked(self, senders: Sequence[Sender], count: int) -> None:
        """Wait until the gateway has received so many requests more from these accounts."""
        enough = count + sum(len(sender.seen.received()) for sender in senders)
        self.until(
            lambda: sum(len(sender.seen.received()) for sender in senders) >= enough,
            f"{count} messages leave",
        )

    def until(self, happened: Callable[[], object], what: str, seconds: float = LIVENESS) -> None:
        until(happened, what, seconds)

    def said(self) -> str:
        """The ends of all logs, for a test that failed."""
        return "\n".join(program.said() for program in self._programs)

    def _new_name(self, kind: str) -> str:
        self._named += 1
        return f"{kind}-{self._named}"


def environment(servers: Servers) -> dict[str, str]:
    """Return the environment of programs that work on these servers."""
    return {
        **os.environ,
        **TIMINGS,
        "DEBUG": "true",
        "LOG_LEVEL": "WARNING",
        "LOG_JSON": "false",
        "DATABASE_URL": servers.postgres.url,
        "REDIS_URL": servers.redis.url,
        "PACELINE_VAR": str(servers.home),
        "DATABASE_POOL": "8",
    }


def until(happened: Callable[[], object], what: str, seconds: float = LIVENESS) -> None:
    """Wait for something; the servers may be away meanwhile."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if happened():
                return
        except DriverError:
            pass  # the database is being restarted
        time.sleep(0.05)
    raise AssertionError(f"Within {seconds:g} s it did not come true that {what}.")
