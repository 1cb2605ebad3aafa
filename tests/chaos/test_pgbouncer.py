"""Paceline through PgBouncer in transaction mode; without the setting for it, a worker says what is wrong."""

from collections.abc import Iterator

import pytest

from tests.chaos import pooler, programs
from tests.chaos.evidence import part_keys
from tests.chaos.lab import Lab
from tests.chaos.operator import Operator

pytestmark = pytest.mark.skipif(not pooler.expected(), reason="pgbouncer is not installed")


@pytest.fixture
def address(lab: Lab) -> Iterator[str]:
    with pooler.pgbouncer(lab.servers.postgres.data, lab.servers.home) as url:
        yield url


def test_whole_runs_go_through_it(lab: Lab, address: str) -> None:
    lab.kill_workers()
    lab.kill_beats()
    env = lab.env | {"DATABASE_URL": address, "PGBOUNCER": "true"}
    worker = programs.worker("pooled", threads=16, env=env, folder=lab.servers.home)
    beat = programs.beat("beat-pooled", env=env, folder=lab.servers.home)
    person = Operator(env)
    try:
        for program in (worker, beat):
            lab.adopt(program)
        senders = [lab.add_account(limits={"per_minute": 1200}, idempotent=False) for _ in range(4)]
        runs = [person.fire(sender.id, targets=40, parts=2) for sender in senders]
        late = lab.add_account()
        [reminder] = person.schedule(late.id, targets=2, after=[3.0])

        for sender, run in zip(senders, runs, strict=True):
            assert lab.settled(run).status == "success"
            targets = lab.operator.targets(run)
            assert sender.seen.arrivals() == dict.fromkeys(part_keys(targets, parts=2), 1)
        lab.until(lambda: len(late.seen.delivered()) == 2, f"reminder {reminder} fires")
        assert "prepared statement" not in worker.said() + beat.said()
    finally:
        person.leave()
        for program in (worker, beat):
            program.kill()
        lab.want_beats(1)


@pytest.mark.parametrize("more", ["", "ignore_startup_parameters = options"])
def test_a_worker_that_was_not_told_of_it_refuses_to_start_with_a_sentence(lab: Lab, more: str) -> None:
    with pooler.pgbouncer(lab.servers.postgres.data, lab.servers.home, more=more) as url:
        name = f"untold-{bool(more)}"
        env = lab.env | {"DATABASE_URL": url}
        worker = programs.worker(name, threads=4, env=env, folder=lab.servers.home)
        lab.adopt(worker)
        try:
            assert worker.exit_code() != 0
        finally:
            worker.kill()
        assert "DATABASE_URL leads to a pooler such as PgBouncer" in worker.said()
        assert "Set PGBOUNCER=true" in worker.said()
