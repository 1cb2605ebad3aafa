"""Matrix: rooms by id (!id:server) or alias (#name:server), people as @name:server.

Ids are opaque, so their case stays. Servers are host names, and lose theirs.
"""

import re
from urllib.parse import unquote

from accounts.addresses.form import Address, BadAddressError, Kind, plain, shown

# Links of matrix.to, and links that Element copies out of its address bar.
LINK = re.compile(r"^(?:https?://)?[\w.-]+/#/(?:room/|user/)?([!#@%][^/?]+).*$", re.IGNORECASE)
KINDS: dict[str, Kind] = {"!": "room", "#": "room", "@": "person"}
SERVER = re.compile(r"^([a-z0-9.-]+|\[[0-9a-f:.]+\])(:\d{1,5})?$")
# Since room version 12 the id of a room is a hash without a server name.
HASH = re.compile(r"^![A-Za-z0-9_-]{43}$")

EXAMPLE = "Write it like #team:example.org, !id:example.org or @anna:example.org."


def canonical(text: str) -> Address:
    if match := LINK.match(text):
        text = plain(unquote(match[1]))
    kind = KINDS.get(text[:1])
    if kind is None:
        raise BadAddressError(f"{shown(text)} is not a room or a person on Matrix. {EXAMPLE}")
    if HASH.match(text):
        return Address(kind=kind, text=text)
    name, _, server = text.partition(":")
    server = server.lower()
    if len(name) < 2 or not SERVER.match(server):
        raise BadAddressError(f"{shown(text)} does not say on which server it is. {EXAMPLE}")
    if re.search(r"\s", name):
        raise BadAddressError(f"{shown(text)} has a space in it. {EXAMPLE}")
    # The rules require names of people in lower case; old ids of rooms and aliases may have capitals.
    return Address(kind=kind, text=f"{plain(name.lower()) if kind == 'person' else name}:{server}")
