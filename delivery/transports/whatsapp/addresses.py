"""WhatsApp's own addresses, shared by the kinds that use it.

We write a person as +4915112345678 and a group as 120363000000000001@g.us. Services write persons with one of
several endings, and people who hide their number as ...@lid.
"""

from collections.abc import Iterable

from delivery.outcomes import FIRST_CONTACTS_LOCKED, NEW_CHATS_USED_UP
from delivery.transports.base import AccountState, AddressLearnt, Known, ReceiptState
from delivery.transports.http.reading import text

CHANNELS = frozenset({"whatsapp"})
# A code is shown for 20 s, the first one for 60; no service says which one it gave us.
QR_SECONDS = 20.0
LOCKED = (
    "WhatsApp does not let this account open new chats for now (463). Chats that it already has still work; "
    "write to fewer new people, and try again in a day or two"
)
USED_UP = (
    "WhatsApp lets this account open no more new chats for now (475): its quota is used up. Chats that it already has "
    "still work"
)
NO_CHATS = {FIRST_CONTACTS_LOCKED: LOCKED, NEW_CHATS_USED_UP: USED_UP}
PERSONS = ("@c.us", "@s.whatsapp.net")
NOBODY = ("@broadcast", "@newsletter")  # shown to everybody: a status, a channel
MEMBER_FIELDS = ("id", "jid", "pn", "phoneNumber", "lid", "JID", "PhoneNumber", "LID")
# Baileys' and WhatsApp Web's numbers for how far a message got; 0 is "not yet".
ACKS = {
    -1: ReceiptState.FAILED,
    1: ReceiptState.SENT,
    2: ReceiptState.DELIVERED,
    3: ReceiptState.READ,
    4: ReceiptState.READ,  # played
}
# Why WhatsApp closed a connection: logged out on the phone, or banned. Others pass.
CLOSED_FOR_GOOD = {401: AccountState.BLOCKED, 403: AccountState.BLOCKED}


def number(address: str) -> str:
    """Return a person's number as services want it: digits alone. Groups and hidden numbers keep their ending."""
    return address if "@" in address else address.removeprefix("+")


def chat_id(address: str, *, person: str) -> str:
    """Return the address with the ending that the service wants for persons."""
    return address if "@" in address else number(address) + person


def canonical(jid: str) -> str:
    """Return a service's address in our form."""
    name, _, server = jid.partition("@")
    name = name.partition(":")[0]  # 4915112345678:7@... is the seventh device of a number
    if f"@{server}" in PERSONS or not server:
        return f"+{name.removeprefix('+')}" if name else ""
    return f"{name}@{server}"


def is_chat(jid: str) -> bool:
    """Decide whether a person or group can be answered there; a status or a channel cannot."""
    return bool(jid) and not jid.endswith(NOBODY)


def is_hidden(jid: str) -> bool:
    """Decide whether WhatsApp hides a number behind this address."""
    return jid.endswith("@lid")


def known(*pairs: tuple[str, str]) -> list[Known]:
    """Return the pairs that are a hidden address and the number behind it, in our form and this order."""
    found = []
    for one, other in pairs:
        hidden, number_ = (one, other) if is_hidden(one) else (other, one)
        if is_hidden(hidden) and number_.endswith(PERSONS) and canonical(number_):
            found.append(Known(hidden=canonical(hidden), address=canonical(number_)))
    return list(dict.fromkeys(found))


def learnt(found: Iterable[Known]) -> list[AddressLearnt]:
    """Return events for pairs of addresses; a pair that is reported again has its old id."""
    return [AddressLearnt(event_id=f"address:{each.hidden}:{each.address}", known=each) for each in found]


def behind(jid: str, found: Iterable[Known]) -> str:
    """Return the number behind an address, where it is among the pairs; else the address; both in our form."""
    own = canonical(jid)
    return next((each.address for each in found if each.hidden == own), own)


def members(rows: Iterable[object]) -> tuple[Known, ...]:
    """Return the participants of a group that are named with both addresses; services use many field names."""
    pairs = []
    for row in rows:
        jids = [text(row, name) for name in MEMBER_FIELDS] + [text(row, "id", "_serialized")]
        numbers = [jid for jid in jids if jid.endswith(PERSONS)]
        pairs += [(jid, numbers[0]) for jid in jids if is_hidden(jid) and numbers]
    return tuple(known(*pairs))
