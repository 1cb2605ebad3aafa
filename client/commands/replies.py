"""Replies: what people wrote."""

from argparse import Namespace

from client.api import Paceline
from client.commands.parsing import Commands, Shared, at_most, command
from client.printing import say, say_json, when


def add(commands: Commands, shared: Shared) -> None:
    parser = command(commands, shared, "replies", list_)
    parser.add_argument("--account", type=int, help="only those to this account")
    parser.add_argument("--recipient", type=int, help="only those of this recipient")
    parser.add_argument("--run", type=int, help="only answers to this run")
    at_most(parser, 20)


def list_(paceline: Paceline, options: Namespace) -> None:
    """Show what people wrote, the newest first."""
    asked = {name: getattr(options, name) for name in ("account", "recipient", "run")}
    rows = paceline.rows("/replies", most=options.limit, **asked)
    if options.json:
        say_json(rows)
        return
    for row in rows:
        answers = f", about run {row['run']}" if row["run"] else ""
        say(f"{when(row['at'])}  {row['sender']} to account {row['account']}{answers}")
        for line in filter(None, [row["subject"], *row["text"].splitlines()]):
            say(f"    {line}")
    if not rows:
        say("There are no replies.")
