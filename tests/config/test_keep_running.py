"""`make run` when a worker, beat or the web server ends."""

import io
import os
import signal
import subprocess
import sys
from pathlib import Path

from config.embedded.process import alive, until
from config.keep_running import AT_ONCE, LONGEST_PAUSE, MOST_IN_A_ROW, Output, RestartPolicy, Supervisor


def test_pauses_grow_and_it_gives_up_after_many_ends_in_a_row() -> None:
    policy = RestartPolicy()
    pauses = [policy.after(0.1) for _ in range(MOST_IN_A_ROW)]
    assert pauses == [1, 2, 4, 8, 16, None]


def test_who_lived_for_a_while_is_started_again_for_ever_and_soon() -> None:
    policy = RestartPolicy()
    assert [policy.after(AT_ONCE + 1) for _ in range(50)] == [1.0] * 50


def test_no_pause_is_longer_than_half_a_minute() -> None:
    assert RestartPolicy(first_pause=20, in_a_row=1).after(0) == LONGEST_PAUSE


def test_a_command_that_keeps_ending_at_once_is_given_up_with_a_sentence() -> None:
    written = io.StringIO()
    policy = RestartPolicy(first_pause=0.001)
    assert Supervisor("worker", "sh -c 'echo no; exit 3'", policy, output=Output(written)).run() == 3
    said = written.getvalue()
    assert said.count(" worker | no\n") == MOST_IN_A_ROW
    assert said.count("worker ended with exit code 3. It starts again in") == MOST_IN_A_ROW - 1
    assert "worker ended 6 times right after its start (exit code 3): giving up." in said


def test_a_killed_command_is_started_again_and_a_signal_ends_both(tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    supervisor = _together(worker=_program(starts), web="sleep 600")
    try:
        first = _started(starts, 1)
        os.kill(first, signal.SIGKILL)
        second = _started(starts, 2)
        assert second != first
        supervisor.send_signal(signal.SIGTERM)
        assert supervisor.wait(30) == 143
        assert until(lambda: not alive(second), seconds=10)
    finally:
        supervisor.kill()
        supervisor.wait()


def test_one_that_gives_up_ends_the_others(tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    first_pause = (
        "import config.keep_running as k; k.RestartPolicy.__init__.__kwdefaults__['first_pause'] = 0.01; "
    )
    together = _together(first_pause, worker=_program(starts), web=f"sh -c '{_WAIT.format(starts)}; exit 3'")
    try:
        assert together.wait(60) == 3
        assert until(lambda: not alive(int(starts.read_text())), seconds=10)
    finally:
        together.kill()
        together.wait()


_WAIT = "while ! [ -s {} ]; do sleep 0.05; done"


def _together(before: str = "", **commands: str) -> "subprocess.Popen[bytes]":
    program = (
        f"import sys; {before}from config.procfile import run_together; sys.exit(run_together({commands!r}))"
    )
    return subprocess.Popen([sys.executable, "-c", program])


def _program(starts: Path) -> str:
    file = starts.with_suffix(".py")
    file.write_text(
        f"import os, time\nprint(os.getpid(), file=open({str(starts)!r}, 'a'), flush=True)\ntime.sleep(600)\n"
    )
    return f"{sys.executable} {file}"


def _started(starts: Path, times: int) -> int:
    """The id of the process that was started last, once there were so many."""
    assert until(lambda: starts.exists() and len(starts.read_text().split()) >= times, seconds=60)
    return int(starts.read_text().split()[-1])
