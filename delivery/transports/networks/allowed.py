"""Decides where accounts may connect to.

The person who enters an account says where its gateway is. On an installation that is shared by people who do not
trust each other, that would let one of them reach anything on the network behind it: databases, cloud metadata,
routers. So the address of every connection is checked right before the connection is made: a name may lead to any
address, and to another one the next time.
"""

import socket
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any

Network = IPv4Network | IPv6Network
Address = IPv4Address | IPv6Address

# Public IPv6 addresses are in this network; all others are for special purposes.
GLOBAL_UNICAST = IPv6Network("2000::/3")
# Python calls some of these global, depending on its version.
NOT_THE_INTERNET: tuple[Network, ...] = (
    IPv4Network("192.88.99.0/24"),  # relays of 6to4
    IPv4Network("192.0.0.0/24"),  # protocols, and the metadata service of machines at Oracle
    IPv4Network("168.63.129.16/32"),  # the metadata service at Azure, in a public network
    IPv6Network("2001::/32"),  # Teredo: a tunnel to anywhere
    IPv6Network("2001:db8::/32"),
    IPv6Network("3fff::/20"),
)
# IPv6 networks with an IPv4 address inside, and how many bits follow after that address.
CARRIERS: tuple[tuple[IPv6Network, int], ...] = (
    (IPv6Network("::ffff:0:0/96"), 0),  # IPv4-mapped
    (IPv6Network("::/96"), 0),  # IPv4-compatible
    (IPv6Network("64:ff9b::/96"), 0),  # NAT64
    (IPv6Network("2002::/16"), 80),  # 6to4
)
HINT = (
    "PRIVATE_NETWORKS is not set, so that accounts cannot connect to private addresses. For a gateway on this "
    "machine set PRIVATE_NETWORKS=127.0.0.0/8,::1/128, for others name their networks; `none` keeps it so."
)
UNSPECIFIED, LOOPBACK = IPv6Address("::"), IPv6Address("::1")


class AddressNotAllowedError(OSError):
    """Raised for a private address that accounts may not connect to."""

    reason = (
        "the account leads to a private address, which this installation does not allow; "
        "whoever runs it can allow it with the setting PRIVATE_NETWORKS"
    )

    def __str__(self) -> str:
        return self.reason


@dataclass(frozen=True, slots=True)
class AllowedNetworks:
    """The private networks that accounts may connect to; None is all of them. Public addresses are always allowed."""

    private: tuple[Network, ...] | None = None

    def require(self, address: str) -> None:
        """Raise AddressNotAllowedError where the address is not allowed."""
        if self.private is None:
            return
        found = judged(address)
        if is_public(found):
            return
        if not any(found in network for network in self.private if network.version == found.version):
            raise AddressNotAllowedError

    def open_socket(self, info: tuple[Any, ...]) -> socket.socket:
        """Return a socket for one of `getaddrinfo`'s answers; raise AddressNotAllowedError."""
        self.require(info[4][0])
        return socket.socket(family=info[0], type=info[1], proto=info[2])


def judged(address: str) -> Address:
    """Return the address that a connection really leads to: the IPv4 address inside an IPv6 address, if any."""
    found = ip_address(address.partition("%")[0])  # without the name of an interface
    if isinstance(found, IPv4Address) or found in (UNSPECIFIED, LOOPBACK):
        return found
    for network, bits in CARRIERS:
        if found in network:
            return IPv4Address((int(found) >> bits) & 0xFFFFFFFF)
    return found


def is_public(address: Address) -> bool:
    """Decide whether the address, as `judged` returns it, is a public one."""
    if isinstance(address, IPv6Address) and address not in GLOBAL_UNICAST:
        return False
    if any(address in network for network in NOT_THE_INTERNET if network.version == address.version):
        return False
    return address.is_global and not address.is_multicast


ANYWHERE = AllowedNetworks()


def hint(words: Sequence[str], *, chosen: bool) -> str:
    """Return the hint for an installation that has not chosen its networks; empty where it has."""
    return HINT if list(words) == ["none"] and not chosen else ""


def allowed_networks(words: Sequence[str]) -> AllowedNetworks:
    """Read the setting: `all`, `none`, or networks such as 10.1.2.0/24; raise ValueError."""
    if list(words) == ["all"]:
        return ANYWHERE
    return AllowedNetworks(() if list(words) == ["none"] else tuple(ip_network(word) for word in words))
