"""Logging in and out, and the MCP server."""

import getpass
import sys
from argparse import Namespace

from client import login
from client.api import Paceline
from client.commands.parsing import Commands, Shared, command
from client.errors import ClientError
from client.login import Login, address_of
from client.printing import complain, say, say_json


def add(commands: Commands, shared: Shared) -> None:
    entering = command(commands, shared, "login", log_in, alone=True)
    entering.add_argument("url", nargs="?", default="", help="the address, such as https://paceline.example")
    command(commands, shared, "logout", log_out, alone=True)
    serving = command(commands, shared, "mcp", serve)
    serving.add_argument("--read-only", action="store_true", help="offer nothing that changes anything")
    serving.add_argument(
        "--send-after-replies",
        action="store_true",
        help="let an assistant send after it has read replies, also where its program cannot ask you itself",
    )


def log_in(options: Namespace) -> None:
    """Keep an address and a key, in a file that only you can read.

    Make the key on the page "API keys". It is asked for, or read from standard input; it is never an argument, since
    other people on this computer see those.
    """
    url = address_of(options.url or _asked("Address of Paceline: "))
    key = getpass.getpass("Key: ") if sys.stdin.isatty() else sys.stdin.readline()
    found = Login(url=url, key=key.strip())
    if not found.key.isascii() or not found.key.isprintable() or not found.key:
        raise ClientError("This is not a key. Copy it from the page “API keys”.")
    with Paceline(found) as paceline:
        me = paceline.get("/me")
    file = login.save(found)
    if options.json:
        say_json({**me, "url": url, "file": str(file)})
    else:
        say(
            f"Logged in to {url} as {me['person']['username']}, with {', '.join(me['scopes'])}. Kept in {file}."
        )


def log_out(options: Namespace) -> None:
    """Delete the kept address and key. The key itself stays valid until you revoke it."""
    gone = login.forget()
    if options.json:
        say_json({"logged_out": gone})
    else:
        say(
            "Logged out. Revoke the key on the page “API keys” if nobody needs it."
            if gone
            else "Not logged in."
        )


def serve(paceline: Paceline, options: Namespace) -> None:
    """Serve the Model Context Protocol on standard input and output, for an assistant."""
    from client.assistant import server  # noqa: PLC0415 - its library takes a second to load

    if sys.stdin.isatty():
        complain(
            "This is for an assistant's program, which starts it itself (docs/client.md). End it with Ctrl+C."
        )
    server.serve(paceline, read_only=options.read_only, send_after_replies=options.send_after_replies)


def _asked(question: str) -> str:
    if not sys.stdin.isatty():
        raise ClientError("Name the address: paceline login https://paceline.example")
    return input(question)
