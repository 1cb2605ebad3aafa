"""The key of this login: whose it is, and what it may do."""

from argparse import Namespace

from client.api import Paceline
from client.commands.parsing import Commands, Shared, command
from client.printing import facts, say_json


def add(commands: Commands, shared: Shared) -> None:
    command(commands, shared, "me", show)


def show(paceline: Paceline, options: Namespace) -> None:
    """Show whose key this is and what it may do."""
    me = paceline.get("/me")
    if options.json:
        say_json(me)
        return
    owners = [owner["username"] for owner in me["owners"]]
    row = {**me, "url": paceline.login.url, "person": me["person"]["username"], "owners": owners}
    facts(
        row,
        {
            "Address": "url",
            "Person": "person",
            "Key": "name",
            "May": "scopes",
            "Ends": "ends_at",
            "For": "owners",
        },
    )
