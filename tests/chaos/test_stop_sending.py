"""Stopping all sending from a terminal while workers send: the gateway's log gets no further message."""

import subprocess
import sys

from tests.chaos.evidence import part_keys
from tests.chaos.lab import Lab
from tests.chaos.programs import PROJECT

TARGETS = 150


def manage(lab: Lab, *arguments: str) -> None:
    subprocess.run([sys.executable, "manage.py", *arguments], cwd=PROJECT, env=lab.env, check=True)


def test_nothing_leaves_between_the_stop_and_the_start_also_over_a_restart(lab: Lab) -> None:
    lab.want_workers(2)
    lab.want_beats(1)
    senders = [lab.add_account(limits={"per_minute": 600}, idempotent=False) for _ in range(3)]
    runs = [lab.operator.fire(sender.id, targets=TARGETS) for sender in senders]
    lab.asked(senders, 30)

    manage(lab, "stop_sending", "--reason", "a test")
    lab.until(lambda: all(lab.operator.run(run).sending == 0 for run in runs), "what had begun has arrived")
    held = [len(sender.seen.received()) for sender in senders]
    assert sum(held) < 3 * TARGETS
    lab.kill_workers()
    lab.want_workers(2)
    lab.until(
        lambda: all(
            lab.operator.account(sender.id).waiting_for == "sending_stopped"
            for sender, run in zip(senders, runs, strict=True)
            if not lab.operator.run(run).settled
        ),
        "every account says why it waits",
    )
    assert [len(sender.seen.received()) for sender in senders] == held

    manage(lab, "start_sending")
    for sender, run in zip(senders, runs, strict=True):
        found = lab.settled(run)
        arrived = sender.seen.arrivals()
        assert max(arrived.values()) == 1
        assert found.sent + found.unconfirmed == TARGETS
        keys = part_keys(target for target in lab.operator.targets(run) if target.status == "sent")
        assert all(arrived[key] == 1 for key in keys)
