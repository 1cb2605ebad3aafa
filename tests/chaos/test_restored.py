"""A backup in the middle of a run, more messages after it, everything lost, a restore: nobody gets anything twice."""

import json
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg

from tests.chaos import programs
from tests.chaos.lab import Lab
from tests.chaos.operator import Operator
from tests.chaos.programs import PROJECT

TARGETS = 120


def manage(env: dict[str, str], *arguments: str, fails: bool = False) -> str:
    command = [sys.executable, "manage.py", *arguments]
    done = subprocess.run(
        command, cwd=PROJECT, env=env, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    assert bool(done.returncode) == fails, done.stderr
    return done.stdout + done.stderr


def test_a_restored_run_goes_on_and_nobody_gets_it_twice_unasked(lab: Lab, tmp_path: Path) -> None:
    lab.want_workers(1)
    lab.want_beats(1)
    senders = [lab.add_account(limits={"per_minute": 120}, idempotent=keyed) for keyed in (True, False)]
    runs = [lab.operator.fire(sender.id, targets=TARGETS) for sender in senders]
    lab.asked(senders, 20)
    said = json.loads(manage(dict(lab.env), "backup", str(tmp_path / "backup"), "--json"))
    assert said["rows"] > 2 * TARGETS
    lab.asked(senders, 12)  # it goes on sending, and all of this is lost
    lab.kill_workers()
    lab.kill_beats()
    before = {sender.name: len(sender.seen.received()) for sender in senders}

    address = urlsplit(lab.env["DATABASE_URL"])
    with psycopg.connect(lab.env["DATABASE_URL"], autocommit=True) as server:
        server.execute("CREATE DATABASE restored")
    url = urlunsplit(address._replace(path="/restored"))
    env = dict(lab.env) | {"DATABASE_URL": url}
    found = json.loads(manage(env, "restore", str(tmp_path / "backup"), "--json"))
    assert not found["decided"]
    assert {each["account"] for each in found["doubtful"]} == {
        senders[1].id
    }  # the other service knows its keys

    worker = programs.worker("restored", threads=8, env=env, folder=lab.servers.home)
    lab.adopt(worker)
    beat = programs.beat("restored-beat", env=env, folder=lab.servers.home)
    lab.adopt(beat)
    operator = Operator(env)
    try:
        waits = ("sending_stopped", "sending_stopped")
        lab.until(
            lambda: tuple(operator.account(each.id).waiting_for for each in senders) == waits, "both wait"
        )
        assert "Decide first" in manage(env, "start_sending", fails=True)
        assert {sender.name: len(sender.seen.received()) for sender in senders} == before

        manage(env, "after_restore", "--apply")
        manage(env, "start_sending")
        lab.until(lambda: all(operator.run(run).settled for run in runs), "both runs end")
        for sender, run in zip(senders, runs, strict=True):
            view = operator.run(run)
            assert view.sent + view.unconfirmed == TARGETS
            assert bool(view.unconfirmed) == (sender is senders[1])
            assert max(sender.seen.arrivals().values()) == 1
        assert len(senders[0].seen.arrivals()) == TARGETS
    finally:
        operator.leave()
