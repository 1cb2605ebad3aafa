"""Recipients: finding them, and adding one."""

from argparse import Namespace

from client.api import Paceline
from client.commands.parsing import Commands, Shared, at_most, command, group, number, pairs
from client.errors import ClientError
from client.printing import cell, facts, say, say_json, table

COLUMNS = {
    "id": "ID",
    "name": "Name",
    "channel": "Channel",
    "address": "Address",
    "state": "State",
    "tags": "Tags",
}
FACTS = {
    "Name": "name",
    "Kind": "kind",
    "Channel": "channel",
    "Address": "address",
    "State": "state",
    "Tags": "tags",
}


def add(commands: Commands, shared: Shared) -> None:
    verbs = group(commands, "recipients", "List, show and add recipients.")
    listing = command(verbs, shared, "list", list_)
    listing.add_argument("words", nargs="*", help="beginnings of words of the name or the address")
    listing.add_argument("--tag", help="the name of a tag")
    listing.add_argument("--state", help="such as reachable, opted_out, archived")
    listing.add_argument("--channel")
    at_most(listing)
    number(command(verbs, shared, "show", show), "recipient")
    adding = command(verbs, shared, "add", put)
    adding.add_argument("channel", help="such as whatsapp, email")
    adding.add_argument("address")
    adding.add_argument("--name")
    adding.add_argument("--tag", action="append", default=[], help="may come several times")
    adding.add_argument(
        "--field", action="append", metavar="NAME=VALUE", help="a variable; may come several times"
    )


def list_(paceline: Paceline, options: Namespace) -> None:
    """List recipients by name."""
    rows = paceline.rows(
        "/recipients",
        most=options.limit,
        q=" ".join(options.words) or None,
        tag=tag_id(paceline, options.tag) if options.tag else None,
        state=options.state,
        channel=options.channel,
    )
    if options.json:
        say_json(rows)
    else:
        table(rows, COLUMNS, none="Nobody is found.")


def show(paceline: Paceline, options: Namespace) -> None:
    """Show one recipient."""
    found = paceline.get(f"/recipients/{options.id}")
    if options.json:
        say_json(found)
        return
    facts(found, FACTS | {"Opted out": "opted_out_at", "Last wrote": "last_inbound_at"})
    for name, value in found["fields"].items():
        say(f"{{{{ {name} }}}}  {cell(value)}")


def put(paceline: Paceline, options: Namespace) -> None:
    """Add a recipient, or update the one that has the address."""
    given = {"channel": options.channel, "address": options.address, "tags": options.tag}
    if options.name is not None:
        given["name"] = options.name
    if fields := pairs(options.field):
        given["fields"] = fields
    result = paceline.post("/recipients", {"recipients": [given]})["results"][0]
    if result["result"] == "refused":
        raise ClientError(result["detail"])
    if options.json:
        say_json(result)
    else:
        say(f"{result['address']}: {result['result']}, number {result['id']}.")


def tag_id(paceline: Paceline, name: str) -> int:
    """Return the id of a tag by its name; raise ClientError where there is none, or several owners have one."""
    tags = [tag for tag in paceline.rows("/tags", most=10_000) if tag["name"].lower() == name.lower()]
    if len(tags) != 1:
        raise ClientError(f"{'There is no' if not tags else 'Several owners have a'} tag “{name}”.")
    return int(tags[0]["id"])
