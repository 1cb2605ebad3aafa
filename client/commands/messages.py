"""Single messages."""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from typing import Any

from client.api import Paceline
from client.commands.parsing import Commands, Shared, command, sends
from client.deciding import NOTHING, decide
from client.printing import complain, say, say_json, when


def add(commands: Commands, shared: Shared) -> None:
    parser = command(commands, shared, "send", send)
    parser.add_argument("text", help="the text; {{ name }} is filled in")
    parser.add_argument("--account", type=int, action="append", required=True, help="several: one is chosen")
    whom = parser.add_mutually_exclusive_group(required=True)
    whom.add_argument("--recipient", type=int, help="the number of a recipient")
    whom.add_argument("--to", metavar="ADDRESS", help="an address; it is added if it is new (with --channel)")
    parser.add_argument("--channel", default="whatsapp", help="of --to (whatsapp)")
    parser.add_argument("--name", default="", help="of a new recipient")
    _details(parser)
    sends(parser)


def _details(parser: ArgumentParser) -> None:
    parser.add_argument("--subject", default="")
    parser.add_argument("--not-before", metavar="TIME", help="such as 2026-11-20T09:00+01:00")
    parser.add_argument(
        "--hours", metavar="9-18", help="the delivery hours; those of the installation otherwise"
    )


def send(paceline: Paceline, options: Namespace) -> None:
    """Send one message to one recipient, inside the delivery hours and the limits of the account.

    Without a terminal it needs --yes. A message whose answer was lost is not sent twice: run the same command again.
    """
    body = _body(options)
    planned = paceline.look("/messages", {**body, "dry_run": True})
    if options.dry_run:
        say_json(planned) if options.json else _show(planned, say, NOTHING)
        return
    if not options.yes:
        _show(planned, complain)
        decide(options, f"Send this to {planned['name'] or planned['address']}?")
    sent = paceline.post("/messages", body)
    if options.json:
        say_json(sent)
    else:
        say(
            f"It is run {sent['id']}. {sent['sentence']} Leaves: {when(sent['leaves_at'] or 'not by itself')}."
        )


def _body(options: Namespace) -> dict[str, Any]:
    body: dict[str, Any] = {"accounts": options.account, "text": options.text, "subject": options.subject}
    if options.recipient is not None:
        body["recipient"] = options.recipient
    else:
        body["to"] = {"channel": options.channel, "address": options.to, "name": options.name}
    if options.not_before:
        body["not_before"] = options.not_before
    if options.hours:
        start, _, end = options.hours.partition("-")
        body |= {"start_hour": start, "end_hour": end}
    return body


def _show(planned: dict[str, Any], out: Callable[[str], None], *last: str) -> None:
    whom = f"{planned['name']} ({planned['address']})" if planned["name"] else planned["address"]
    lines = [
        f"From {planned['account_name']} to {whom}",
        *filter(None, [planned["subject"]]),
        *planned["texts"],
    ]
    leaves = when(planned["leaves_at"] or "not by itself")
    for line in [*lines, f"Leaves: {leaves}. {planned['sentence']}", *last]:
        out(line)
