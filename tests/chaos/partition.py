"""Workers and beats behind switches of their own, so that each can be led to another Redis, or have another time."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from activity.heartbeats import WORKER_KEY
from tests.chaos import programs
from tests.chaos.lab import Lab, Sender
from tests.chaos.programs import Program
from tests.chaos.switch import FakeTime, LooseRedis, Switch

# An hour lasts half a minute, so that whole hours pass while a test looks.
SCALED = {"MINUTE_SECONDS": "0.5", "CLOCK_TOLERANCE_SECONDS": "2"}
HOUR_MS = 30_000


class Partition:
    """Servers and programs of one test, beside the lab's own database and gateway."""

    def __init__(self, lab: Lab, *, clock: FakeTime | None = None) -> None:
        self.lab = lab
        self.servers: list[LooseRedis] = []
        self.switches: list[Switch] = []
        self.programs: list[Program] = []
        self.first = self._serve(LooseRedis(self._place("redis"), clock=clock))

    def start(self, *, clock: FakeTime | None = None) -> Switch:
        """One more worker, with a beat beside it, behind a new switch; `clock` is the worker's."""
        name = f"switched-{uuid4().hex[:6]}"
        switch = Switch(self._place("switch"), self.first)
        self.switches.append(switch)
        env = self.lab.env | SCALED | {"REDIS_URL": switch.url}
        folder = self.lab.servers.home
        moved_by = clock.file if clock else None
        self.programs.append(programs.worker(name, threads=8, env=env, folder=folder, clock=moved_by))
        self.programs.append(programs.beat(f"{name}-beat", env=env, folder=folder))
        self.lab.until(lambda: switch.client().hexists(WORKER_KEY, f"{name}@chaos"), f"{name} is ready")
        return switch

    def copy(self, server: LooseRedis) -> LooseRedis:
        """A second server with what the first knows at this moment."""
        return self._serve(LooseRedis(self._place("redis"), copy_of=server))

    def lead_all_to(self, server: LooseRedis) -> None:
        for switch in self.switches:
            switch.lead_to(server)

    def waits_for(self, sender: Sender, reason: str) -> None:
        self.lab.until(
            lambda: self.lab.operator.account(sender.id).waiting_for == reason, f"it waits for {reason}"
        )

    def end(self) -> None:
        for program in self.programs:
            program.kill()
        for switch in self.switches:
            switch.close()
        for server in self.servers:
            server.stop()

    def said(self) -> str:
        return "\n".join(program.said() for program in self.programs)

    def _serve(self, server: LooseRedis) -> LooseRedis:
        self.servers.append(server)
        return server

    def _place(self, kind: str) -> Path:
        return self.lab.servers.home / f"{kind}-{uuid4().hex[:6]}"


@contextmanager
def partition(lab: Lab, *, clock: FakeTime | None = None) -> Iterator[Partition]:
    """No worker but those of the partition: the lab's own know the true hour, and another Redis."""
    lab.kill_workers()
    assert not lab.strangers(), "Another worker would serve the accounts as well."
    made = Partition(lab, clock=clock)
    try:
        yield made
    except BaseException:
        print(made.said())  # noqa: T201 - pytest shows it with the failure
        raise
    finally:
        made.end()
