"""The Python programs of the Procfile start as copies of one process, and again as programs of their own."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from config.embedded.process import alive, until
from config.forking import expanded, start

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


def test_a_copy_runs_the_program_and_a_killed_one_starts_again_by_itself(tmp_path: Path) -> None:
    (tmp_path / "noting.py").write_text(NOTES)
    notes = tmp_path / "notes"
    program = (
        "import sys; from config.procfile import run_together; "
        f"sys.exit(run_together({{'worker': 'python -m noting {notes} $WHO'}}))"
    )
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = os.environ | {"PYTHONPATH": str(tmp_path), "WHO": "me", "PATH": path, "PYTHONUNBUFFERED": "1"}
    together = subprocess.Popen(
        [sys.executable, "-c", program], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    try:
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
    finally:
        together.kill()
        together.wait()
    assert said.count(b"worker | hello from me") == 2
    assert b"worker ended with exit code 137. It starts again in 1 s." in said


def _noted(notes: Path, times: int) -> list[str]:
    """Return what the program noted that was started last, once there were so many."""
    assert until(lambda: notes.exists() and notes.read_text().count("\n") >= times, seconds=60)
    return notes.read_text().splitlines()[-1].split()
