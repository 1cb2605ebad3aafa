"""`python -m config.procfile`: run the lines of the Procfile side by side.

Each is started again when it ends. A signal stops all of them, and so does one that keeps ending at once.
"""

import shlex
import sys

from honcho import manager
from honcho.environ import parse_procfile
from honcho.printer import Printer

from config.embedded.place import PROJECT

# A worker finishes its current messages before it stops.
manager.KILL_WAIT = 20


def main() -> int:
    """Run them all, with this program's environment, and return the exit code of the first that gave up."""
    processes = parse_procfile((PROJECT / "Procfile").read_text()).processes
    together = manager.Manager(Printer(sys.stdout, colour=sys.stdout.isatty()))
    for name, command in processes.items():
        together.add_process(name, kept_running(name, command), cwd=str(PROJECT))
    together.loop()
    return int(together.returncode)


def kept_running(name: str, command: str) -> str:
    """Return the command to keep running, without a shell, which would outlive its killed parent or leave a child."""
    return "exec " + shlex.join([sys.executable, "-m", "config.keep_running", name, command])


if __name__ == "__main__":
    sys.exit(main())
