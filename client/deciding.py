"""Asks the person before something leaves. Without a terminal nobody can be asked, so nothing leaves without --yes."""

import sys
from argparse import Namespace

from client.errors import NotConfirmedError
from client.printing import complain

NOTHING = "Nothing was sent."


def decide(options: Namespace, question: str, *, nothing: str = NOTHING) -> None:
    """Return where the person agrees; raise NotConfirmedError where they do not, or cannot be asked."""
    if options.yes:
        return
    if options.json or not sys.stdin.isatty():
        raise NotConfirmedError(f"{nothing} This was a dry run. To do it, run the command again with --yes.")
    complain(f"{question} [y/N]")
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise NotConfirmedError(nothing)


def ask_phrase(phrase: str) -> str:
    """Return what the person types when they are asked for a phrase."""
    complain(f"Type “{phrase}” to go on:")
    return sys.stdin.readline().strip()
