"""python -m tests.chaos.clocked FILE MODULE ...: runs a module by a wall clock that FILE moves while it runs.

FILE says by how many seconds the clock is ahead. Only the process' own idea of the time moves, as on a machine whose
clock is set; what it waits for by the monotonic clock goes on.
"""

import runpy
import sys
import threading
import time
from pathlib import Path

import time_machine

LOOK_EVERY = 0.05  # seconds


def main() -> None:
    file, module = Path(sys.argv[1]), sys.argv[2]
    sys.argv = sys.argv[2:]
    with time_machine.travel(time.time(), tick=True) as clock:
        threading.Thread(target=_follow, args=(file, clock), daemon=True).start()
        runpy.run_module(module, run_name="__main__", alter_sys=True)


def _follow(file: Path, clock: time_machine.Traveller) -> None:
    ahead = 0
    while True:
        wanted = int(file.read_text().strip().removesuffix("s") or ahead)
        if wanted != ahead:
            clock.shift(wanted - ahead)
            ahead = wanted
        time.sleep(LOOK_EVERY)


if __name__ == "__main__":
    main()
