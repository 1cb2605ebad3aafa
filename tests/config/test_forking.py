"""The Python programs of the Procfile start as copies of one process, and again as programs of their own."""

import io
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from config.embedded.process import alive, until
from config.forking import Copy, expanded, start

NOTES = """
import os, sys, time
print("hello from", *sys.argv[2:])
with open(sys.argv[1], "a") as notes:
    print(os.getpid(), "config.forking" in sys.modules, sys.argv[0].rsplit("/")[-1], file=notes)
time.sleep(600)
"""


@pytest.mark.parametrize(
    ("word", "becomes"),
    [
        ("$PORT", "8000"),
        ("--port=$PORT", "--port=8000"),
        ("--concurrency=${THREADS:-64}", "--concurrency=64"),
        ("--concurrency=${PORT:-64}", "--concurrency=8000"),
        ("$NOTHING", ""),
        ("plain", "plain"),
    ],
)
def test_the_environment_is_put_in_as_by_a_shell(word: str, becomes: str) -> None:
    assert expanded(word, {"PORT": "8000"}) == becomes


def test_another_program_is_left_to_its_own_start() -> None:
    assert start("web", "sh -c 'exit 3'") is None


def test_one_thread_may_look_while_another_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    pid, reaped, ask = os.posix_spawn("/bin/true", ["true"], {}), threading.Event(), os.waitpid

    def slowly(pid: int, how: int) -> tuple[int, int]:
        found = ask(pid, how)
        if found[0]:
            reaped.set()
            time.sleep(0.05)
        return found

    monkeypatch.setattr(os, "waitpid", slowly)
    copy = Copy(pid, io.BytesIO())
    looking = threading.Thread(target=lambda: until(lambda: copy.poll() is not None, seconds=10))
    looking.start()
    assert reaped.wait(10)
    assert copy.wait() == 0
    looking.join()


def test_a_copy_runs_the_program_and_a_killed_one_starts_again_by_itself(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    with _together(tmp_path, ["worker"]) as together:
        first, copied, name = _noted(notes, 1)
        assert (copied, name) == ("True", "python")
        assert Path(f"/proc/{first}/comm").read_text().strip() == "worker"
        os.kill(int(first), signal.SIGKILL)
        second, copied, _ = _noted(notes, 2)
        assert copied == "False"
        together.send_signal(signal.SIGTERM)
        said, _ = together.communicate(timeout=30)
        assert together.returncode == 143
        assert until(lambda: not alive(int(second)), seconds=10)
    assert said.count(b"worker | hello from me") == 2
    assert b"worker ended with exit code 137. It starts again in 1 s." in said


def test_no_copy_keeps_the_output_of_another_open(tmp_path: Path) -> None:
    """Else it would wait for ever to write, once the program that reads its output was killed."""
    with _together(tmp_path, ["web", "worker"]) as together:
        _noted(tmp_path / "notes", 2)
        pids = [line.split()[0] for line in (tmp_path / "notes").read_text().splitlines()]
        files = [{each.readlink() for each in Path(f"/proc/{pid}/fd").iterdir()} for pid in pids]
        outputs = [Path(f"/proc/{pid}/fd/1").readlink() for pid in pids]
        together.terminate()
        together.communicate(timeout=30)
    assert outputs[0] not in files[1]
    assert outputs[1] not in files[0]


@contextmanager
def _together(folder: Path, names: Sequence[str]) -> "Iterator[subprocess.Popen[bytes]]":
    """Run a program that notes its starts, under each of the names."""
    (folder / "noting.py").write_text(NOTES)
    commands = dict.fromkeys(names, f"python -m noting {folder / 'notes'} $WHO")
    program = f"import sys; from config.procfile import run_together; sys.exit(run_together({commands!r}))"
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = os.environ | {"PYTHONPATH": str(folder), "WHO": "me", "PATH": path, "PYTHONUNBUFFERED": "1"}
    together = subprocess.Popen(
        [sys.executable, "-c", program], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    try:
        yield together
    finally:
        together.kill()
        together.wait()


def _noted(notes: Path, times: int) -> list[str]:
    """Return what the program noted that was started last, once there were so many."""
    assert until(lambda: notes.exists() and notes.read_text().count("\n") >= times, seconds=60)
    return notes.read_text().splitlines()[-1].split()
