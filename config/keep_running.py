"""`python -m config.keep_running NAME COMMAND`: run a command, and start it again when it ends.

`make run` starts each line of the Procfile through this. It waits a little longer before each start, and gives up
with a sentence once the command keeps ending right after its start: waiting will not fix that. The program then ends
with the command's exit code.
"""

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from types import FrameType

from config.embedded.process import exit_code

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


class Supervisor:
    """Runs one command until it is told to stop or gives up."""

    def __init__(self, name: str, command: str, policy: RestartPolicy) -> None:
        self._name, self._command, self._policy = name, command, policy
        self._stop = threading.Event()
        self._child: subprocess.Popen[bytes] | None = None

    def stop(self, _number: int, _frame: FrameType | None) -> None:
        """Pass the signal on. The command may have had it already, if it was sent to the whole group."""
        self._stop.set()
        if self._child is not None and self._child.poll() is None:
            self._child.terminate()

    def run(self) -> int:
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
        with subprocess.Popen(f"exec {self._command}", shell=True) as self._child:  # noqa: S602 - the Procfile's line
            if self._stop.is_set():
                self._child.terminate()
            return exit_code(self._child.wait())

    @staticmethod
    def _say(sentence: str) -> None:
        sys.stdout.write(f"{sentence}\n")
        sys.stdout.flush()


def main(arguments: Sequence[str]) -> int:
    name, command = arguments
    supervisor = Supervisor(name, command, RestartPolicy())
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, supervisor.stop)
    return supervisor.run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
