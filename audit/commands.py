"""The door of commands: what `manage.py` changes is recorded with the command and the login that ran it.

Only the name of a command is recorded, not what was typed behind it: that may hold a password.
"""

import getpass
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from audit.origin import Door, Origin, coming_from


@contextmanager
def as_command(arguments: Sequence[str]) -> Iterator[None]:
    """Let everything inside come from the command that `arguments` name, as in `sys.argv`."""
    name = arguments[1] if len(arguments) > 1 else "help"
    with coming_from(Origin(door=Door.COMMAND, via=f"manage.py {name} by {_login()}")):
        yield


def _login() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        return "an unnamed login"
