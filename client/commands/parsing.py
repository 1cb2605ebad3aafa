"""Describes commands and the options that several of them have."""

import argparse
from collections.abc import Callable
from typing import Any

from client.errors import ClientError

Commands = Any  # argparse keeps its own type of a group of commands to itself
Shared = argparse.ArgumentParser


def command(
    commands: Commands, shared: Shared, name: str, do: Callable[..., Any], *, alone: bool = False
) -> argparse.ArgumentParser:
    """Add a command, which says of itself what the docstring of its function says."""
    said = (do.__doc__ or "").strip()
    found: argparse.ArgumentParser = commands.add_parser(
        name, parents=[shared], help=said.partition("\n")[0], description=said
    )
    found.set_defaults(do=do, alone=alone)
    return found


def group(commands: Commands, name: str, purpose: str) -> Commands:
    """Add a noun, and return the place for its verbs."""
    noun = commands.add_parser(name, help=purpose, description=purpose)
    return noun.add_subparsers(required=True, metavar="VERB")


def number(parser: argparse.ArgumentParser, noun: str) -> None:
    """Add the id of a row."""
    parser.add_argument("id", type=int, help=f"the number of the {noun}")


def at_most(parser: argparse.ArgumentParser, default: int = 50) -> None:
    """Add the number of rows to show."""
    parser.add_argument("--limit", type=int, default=default, help=f"rows to show ({default})")


def sends(parser: argparse.ArgumentParser) -> None:
    """Add the choices of a command after which something leaves."""
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--dry-run", action="store_true", help="only say what would happen")
    choice.add_argument("--yes", action="store_true", help="do it without asking")


def pairs(given: list[str] | None) -> dict[str, str]:
    """Return NAME=VALUE options as a mapping."""
    found = {}
    for each in given or ():
        name, equals, value = each.partition("=")
        if not equals:
            raise ClientError(f"“{each}” is not of the form NAME=VALUE.")
        found[name] = value
    return found
