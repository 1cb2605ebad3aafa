"""`python -m config.procfile`: run the lines of the Procfile side by side until one of them ends."""

import sys

from honcho import manager
from honcho.environ import parse_procfile
from honcho.printer import Printer

from config.embedded.place import PROJECT

# A worker finishes the messages in hand before it goes.
manager.KILL_WAIT = 20


def main() -> int:
    """Run them all, with this program's environment, and return the exit code of the first that ended."""
    processes = parse_procfile((PROJECT / "Procfile").read_text()).processes
    together = manager.Manager(Printer(sys.stdout, colour=sys.stdout.isatty()))
    for name, command in processes.items():
        together.add_process(name, command, cwd=str(PROJECT))
    together.loop()
    return int(together.returncode)


if __name__ == "__main__":
    sys.exit(main())
