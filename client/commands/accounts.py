"""Accounts: what they are doing, pausing and resuming them."""

from argparse import Namespace

from client.api import Paceline
from client.commands.parsing import Commands, Shared, at_most, command, group, number
from client.printing import facts, say, say_json, table

COLUMNS = {"id": "ID", "name": "Name", "channel": "Channel", "status": "Status", "sentence": "Now"}


def add(commands: Commands, shared: Shared) -> None:
    verbs = group(commands, "accounts", "List, show, pause and resume accounts.")
    listing = command(verbs, shared, "list", list_)
    listing.add_argument("--status", help="such as active, paused, offline")
    listing.add_argument("--channel", help="such as whatsapp, email")
    at_most(listing)
    for name, do in {"show": show, "pause": pause, "resume": resume}.items():
        number(command(verbs, shared, name, do), "account")


def list_(paceline: Paceline, options: Namespace) -> None:
    """List the accounts, each with what it is doing now."""
    rows = paceline.rows("/accounts", most=options.limit, status=options.status, channel=options.channel)
    if options.json:
        say_json(rows)
    else:
        table(rows, COLUMNS, none="There are no accounts.")


def show(paceline: Paceline, options: Namespace) -> None:
    """Show one account with how much of its limits is used."""
    account = paceline.get(f"/accounts/{options.id}")
    if options.json:
        say_json(account)
        return
    names = {
        "Name": "name",
        "Channel": "channel",
        "Service": "transport",
        "Profile": "profile",
        "Zone": "zone",
    }
    facts(account, names | {"Status": "status", "Now": "sentence"})
    for use in account["use"]:
        most = "no limit" if use["limit"] is None else f"of {use['limit']:,}"
        say(f"{use['action']} per {use['span']}: {use['used']:,} {most}")


def pause(paceline: Paceline, options: Namespace) -> None:
    """Pause an account and its runs: nothing more leaves from it."""
    _tell(options, paceline.post(f"/accounts/{options.id}/pause"))


def resume(paceline: Paceline, options: Namespace) -> None:
    """Let an account send again, and continue the runs that it stopped."""
    _tell(options, paceline.post(f"/accounts/{options.id}/resume"))


def _tell(options: Namespace, account: dict[str, str]) -> None:
    if options.json:
        say_json(account)
    else:
        say(f"{account['name']}: {account['status']}. {account['sentence']}")
