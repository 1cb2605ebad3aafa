"""The command `paceline`: reads the arguments, calls the API, prints the answer.

Exit codes: 0 done, 1 refused or failed, 2 wrong arguments, 3 not confirmed, 4 no answer came (run the same again).
"""

import argparse
import os
import sys
from collections.abc import Sequence

from client import login
from client.api import Paceline
from client.commands import accounts, messages, people, recipients, reminders, replies, runs, sessions
from client.errors import ClientError
from client.printing import complain, say_json

INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    options = parser().parse_args(arguments)
    try:
        return _run(options)
    except ClientError as error:
        _tell(error, as_json=options.json)
        return error.code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # such as `paceline runs list | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    root = argparse.ArgumentParser(prog="paceline", description="Paceline from the command line.")
    commands = root.add_subparsers(required=True, metavar="COMMAND")
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--json", action="store_true", help="print the answer as JSON")
    for each in (sessions, people, accounts, recipients, reminders, runs, replies, messages):
        each.add(commands, shared)
    return root


def _run(options: argparse.Namespace) -> int:
    if options.alone:  # needs no login, or makes its own
        return int(options.do(options) or 0)
    with Paceline(login.find()) as paceline:
        return int(options.do(paceline, options) or 0)


def _tell(error: ClientError, *, as_json: bool) -> None:
    """Print an error for a program on standard output, and for a person on standard error."""
    if as_json:
        say_json(error.body)
    else:
        complain(str(error))
