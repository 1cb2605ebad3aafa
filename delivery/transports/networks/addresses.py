"""Reads addresses of other servers strictly, in the one way that every part of Paceline shares.

A forbidden host is reached where two programs read one address differently: `https://127.0.0.1\\@allowed.example/`
is allowed.example to one and 127.0.0.1 to the other. So an address is read here once, refused if any character of it
could mean two things, and rebuilt from its parts: the original text is not read a second time.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address

import idna

# User names, fragments, backslashes, spaces and control characters are refused.
_ADDRESS = re.compile(
    r"(?P<scheme>[A-Za-z]{1,10})://(?P<place>[^/?#\\@\s]+)"
    r"(?P<path>(?:/[A-Za-z0-9._~!$&'()*+,;=:@%/-]*)?)(?:\?(?P<query>[A-Za-z0-9._~!$&'()*+,;=:@%/?-]*))?"
)
_PLACE = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]{2,45}\]|[^\[\]:%]+)(?::(?P<port>[0-9]{1,5}))?")
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
# "0x7f", "017" and "2130706433" are numbers to some systems, which make an address of them.
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
LONGEST = 2_000
LONGEST_HOST = 253
USUAL_PORTS = {"http": 80, "https": 443}


class BadWebAddressError(ValueError):
    """Raised for an address that two programs could read differently."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebAddress:
    """An address in its parts. `host` is in ASCII and lower case; an IPv6 address has no brackets."""

    scheme: str
    host: str
    port: int
    path: str = ""
    query: str = ""

    @property
    def origin(self) -> str:
        """Return the scheme, the host and, where it is not the usual one, the port."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == USUAL_PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}"

    def __str__(self) -> str:
        return f"{self.origin}{self.path}{f'?{self.query}' if self.query else ''}"


def web_address(text: str, *, schemes: Collection[str] = ("http", "https")) -> WebAddress:
    """Read an address strictly; raise BadWebAddressError."""
    found = _ADDRESS.fullmatch(text) if len(text) <= LONGEST else None
    place = _PLACE.fullmatch(found["place"]) if found else None
    if found is None or place is None or found["scheme"].lower() not in schemes:
        raise BadWebAddressError("this is not a plain http or https address")
    scheme = found["scheme"].lower()
    return WebAddress(
        scheme=scheme,
        host=host_name(place["host"].strip("[]")),
        port=_port(place["port"], scheme),
        path=found["path"],
        query=found["query"] or "",
    )


def host_name(text: str) -> str:
    """Read the name or the IP address of a host; raise BadWebAddressError."""
    if ":" in text:
        return _ipv6(text)
    name = _ascii(text.removesuffix("."))
    labels = name.split(".")
    if not name or len(name) > LONGEST_HOST or not all(_LABEL.fullmatch(label) for label in labels):
        raise BadWebAddressError("this is not the name of a host")
    return _ipv4(name) if _NUMBER.fullmatch(labels[-1]) else name


def _ascii(name: str) -> str:
    """Return the name as the DNS has it; IDNA 2008, as browsers read it."""
    if name.isascii():
        return name.lower()
    try:
        return idna.encode(name, uts46=True).decode().lower()
    except (idna.IDNAError, UnicodeError) as error:
        raise BadWebAddressError("this is not the name of a host") from error


def _ipv4(text: str) -> str:
    """Return the address, written as four numbers; refuse any other spelling."""
    try:
        return str(ip_address(text))
    except ValueError as error:
        raise BadWebAddressError("this is not an IP address in its usual form") from error


def _ipv6(text: str) -> str:
    try:
        return str(IPv6Address(text.replace("%", "/")))  # not with an interface of this machine
    except ValueError as error:
        raise BadWebAddressError("this is not an IP address in its usual form") from error


def _port(text: str | None, scheme: str) -> int:
    port = int(text) if text else USUAL_PORTS[scheme]
    if not 0 < port < 65536:
        raise BadWebAddressError("this port does not exist")
    return port
