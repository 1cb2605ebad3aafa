"""Runs a command, and starts it again when it ends, for `make run`.

It waits a little longer before each start, and gives up with a sentence once the command keeps ending right after its
start: waiting will not fix that.
"""

import subprocess
import threading
import time
from dataclasses import dataclass
from datetime import datetime
from typing import TextIO

from config.embedded.process import exit_code
from config.forking import Copy

AT_ONCE = 15.0  # seconds: a command that ran for less ended "at once"
MOST_IN_A_ROW = 6
FIRST_PAUSE = 1.0
LONGEST_PAUSE = 30.0


@dataclass(slots=True, kw_only=True)
class RestartPolicy:
    """Decides how long to wait before the next start, and when to give up."""

    first_pause: float = FIRST_PAUSE
    in_a_row: int = 0

    def after(self, lived: float) -> float | None:
        """Return the pause after a command that ran for so many seconds; None means no further start."""
        self.in_a_row = self.in_a_row + 1 if lived < AT_ONCE else 1
        if self.in_a_row >= MOST_IN_A_ROW:
            return None
        return float(min(LONGEST_PAUSE, self.first_pause * 2 ** (self.in_a_row - 1)))


class Output:
    """Prints the lines of several programs, each with the time and the program's name."""

    def __init__(self, to: TextIO, *, width: int = 0) -> None:
        self._to, self._width = to, width
        self._lock = threading.Lock()

    def write(self, name: str, line: str) -> None:
        with self._lock:
            self._to.write(f"{datetime.now().astimezone():%H:%M:%S} {name:<{self._width}} | {line}\n")
            self._to.flush()


class Supervisor:
    """Runs one command until it is told to stop or gives up. `first` is its first process, if it runs already."""

    def __init__(
        self, name: str, command: str, policy: RestartPolicy, *, output: Output, first: Copy | None = None
    ) -> None:
        self._name, self._command, self._policy, self._output = name, command, policy, output
        self._stop = threading.Event()
        self._child: subprocess.Popen[bytes] | Copy | None = first
        self._first = first

    def stop(self) -> None:
        """Let the command end, and do not start it again."""
        self._stop.set()
        if self._child is not None and self._child.poll() is None:
            self._child.terminate()

    def kill(self) -> None:
        """End a command that does not end by itself."""
        if self._child is not None and self._child.poll() is None:
            self._child.kill()

    def run(self) -> int:
        """Run the command again and again; return its exit code once it is stopped or given up."""
        while True:
            began = time.monotonic()
            code = self._once()
            if self._stop.is_set():
                return code
            pause = self._policy.after(time.monotonic() - began)
            if pause is None:
                self._say(
                    f"{self._name} ended {MOST_IN_A_ROW} times right after its start (exit code {code}): giving up. "
                    "Its last lines above say why."
                )
                return code or 1
            self._say(f"{self._name} ended with exit code {code}. It starts again in {pause:g} s.")
            if self._stop.wait(pause):
                return code

    def _once(self) -> int:
        first, self._first = self._first, None
        with first or self._started() as self._child:
            if self._stop.is_set():
                self._child.terminate()
            for line in self._child.stdout or ():
                self._say(line.decode(errors="replace").rstrip("\r\n"))
            return exit_code(self._child.wait())

    def _started(self) -> "subprocess.Popen[bytes]":
        # In a session of its own, so that a terminal's Ctrl-C reaches it once and from here. Without a shell in
        # between, which would outlive its killed parent or leave a child.
        return subprocess.Popen(  # noqa: S602 - the Procfile's line
            f"exec {self._command}",
            shell=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def _say(self, line: str) -> None:
        self._output.write(self._name, line)
