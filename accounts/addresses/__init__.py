"""Brings every address into its one canonical form, so that a recipient exists once per owner and channel (SPEC C1).

Whatever writes an address goes through here: forms, the admin, import, the API, sync and webhooks. The
database has the shape of a canonical form as a constraint, so nothing gets around it unnoticed.
"""

from collections.abc import Callable, Mapping

from accounts.addresses import linkedin, mailboxes, matrix, phones
from accounts.addresses.form import SHAPES, Address, BadAddressError, Kind, plain, shown

__all__ = ["SHAPES", "Address", "BadAddressError", "Kind", "canonical"]

LONGEST = 255
LONGEST_WRITTEN = 2_000  # links come with a tail

CHANNELS: Mapping[str, Callable[[str, str], Address]] = {
    "whatsapp": phones.canonical,
    "email": lambda text, _: mailboxes.canonical(text),
    "linkedin": lambda text, _: linkedin.canonical(text),
    "matrix": lambda text, _: matrix.canonical(text),
}


def canonical(channel: str, text: str, *, region: str = "") -> Address:
    """Return the canonical form of `text` on a channel, and the kind of recipient that the address names.

    `region` is the country of numbers that are written without one, such as "MY". A canonical address stays the same
    when it is passed in again, with any region. Raises BadAddressError, whose text is for people.
    """
    given = plain(text)
    if not given:
        raise BadAddressError("The address is empty. Write one, or leave the row out.")
    found = CHANNELS[channel](given[:LONGEST_WRITTEN], region)
    if len(given) > LONGEST_WRITTEN or len(found.text) > LONGEST:
        raise BadAddressError(f"{shown(given)} is too long. Write one address alone.")
    return found
