"""WhatsApp's own addresses, shared by the kinds that speak with it.

We write a person as +4915112345678 and a group as 120363000000000001@g.us. Services write persons with one of
several endings, and those who hide their number as ...@lid.
"""

from delivery.transports.base import AccountState, ReceiptState

CHANNELS = frozenset({"whatsapp"})
# A code is shown for 20 s, the first one for 60; no service says which one it gave us.
QR_SECONDS = 20.0
LOCKED = (
    "WhatsApp does not let this account open new chats for now (463). Chats that it already has still work; "
    "write to fewer new people, and try again in a day or two"
)
PERSONS = ("@c.us", "@s.whatsapp.net")
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
    """A person's number as services want it: digits alone. Groups and hidden numbers keep their ending."""
    return address if "@" in address else address.removeprefix("+")


def chat_id(address: str, *, person: str) -> str:
    """The address with the ending that the service wants for persons."""
    return address if "@" in address else number(address) + person


def canonical(jid: str) -> str:
    """A service's address in our form."""
    name, _, server = jid.partition("@")
    name = name.partition(":")[0]  # 4915112345678:7@... is the seventh device of a number
    if f"@{server}" in PERSONS or not server:
        return f"+{name.removeprefix('+')}" if name else ""
    return f"{name}@{server}"


def is_chat(jid: str) -> bool:
    """Not a status update that somebody showed to everybody."""
    return bool(jid) and not jid.endswith("@broadcast")
