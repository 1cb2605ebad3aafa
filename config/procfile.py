"""`python -m config.procfile`: run the lines of the Procfile side by side.

Each is started again when it ends. A signal stops all of them, and so does one that keeps ending at once. One program
does this for all of them, and loads what they share before it starts them as copies of itself (`forking.py`). One that
has ended is started as a program of its own: by then this one has threads, and no copies are made any more.
"""

import os
import signal
import sys
import threading
from collections.abc import Mapping
from queue import SimpleQueue
from types import FrameType

from honcho.environ import parse_procfile

from config import forking
from config.embedded.place import PROJECT
from config.embedded.process import STOP_SIGNALS
from config.keep_running import Output, RestartPolicy, Supervisor

PATIENCE = 20.0  # seconds that a program has to end: a worker finishes its current messages


def main() -> int:
    """Run them all, with this program's environment, and return the exit code of the first that gave up."""
    processes = parse_procfile((PROJECT / "Procfile").read_text()).processes
    forking.load_shared()
    return run_together({name: leveled(command) for name, command in processes.items()})


def leveled(command: str) -> str:
    """Return the command with the level of LOG_LEVEL, where it logs by a level of its own."""
    level = os.environ.get("LOG_LEVEL", "").lower()
    return command.replace("--loglevel=info", f"--loglevel={level}") if level else command


def run_together(commands: Mapping[str, str]) -> int:
    """Run commands by name until a signal comes or one gives up; stop the others and return its exit code."""
    codes = SimpleQueue[int]()
    for number in STOP_SIGNALS:  # before any copy runs: it would be left behind
        signal.signal(number, lambda number, _: _note(codes, number, _))
    output = Output(sys.stdout, width=max(map(len, commands)))
    first = _copies(commands)
    supervisors = [
        Supervisor(name, command, RestartPolicy(), output=output, first=first.get(name))
        for name, command in commands.items()
    ]
    threads = [threading.Thread(target=lambda each=each: codes.put(each.run())) for each in supervisors]
    for thread in threads:
        thread.start()
    code = codes.get()
    _stop(supervisors, threads)
    return code


def _copies(commands: Mapping[str, str]) -> dict[str, forking.Copy]:
    """Start those of the commands that can run as copies of this program."""
    found: dict[str, forking.Copy] = {}
    for name, command in commands.items():
        if copy := forking.start(name, command, before=list(found.values())):
            found[name] = copy
    return found


def _note(codes: "SimpleQueue[int]", number: int, _frame: FrameType | None) -> None:
    codes.put(128 + number)


def _stop(supervisors: list[Supervisor], threads: list[threading.Thread]) -> None:
    for supervisor in supervisors:
        supervisor.stop()
    patience = threading.Timer(PATIENCE, _kill, [supervisors])
    patience.start()
    for thread in threads:
        thread.join()
    patience.cancel()


def _kill(supervisors: list[Supervisor]) -> None:
    for supervisor in supervisors:
        supervisor.kill()


if __name__ == "__main__":
    sys.exit(main())
