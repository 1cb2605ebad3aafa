"""Where accounts may connect to.

Who enters an account says where its gateway is. On an installation that is shared by people who do not trust each
other, that would let one of them speak to whatever is on the network behind it: databases, cloud metadata, routers.
So it is the address that is looked at, of every connection and right before it is made: a name may lead anywhere, and
elsewhere the next time.
"""

import socket
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any

Network = IPv4Network | IPv6Network


class OutOfReachError(OSError):
    """A private address that accounts may not connect to."""

    reason = (
        "the account leads to a private address, which this installation does not allow (PRIVATE_NETWORKS)"
    )


@dataclass(frozen=True, slots=True)
class Reach:
    """The private networks that accounts may connect to; None is all of them. The internet is always open."""

    private: tuple[Network, ...] | None = None

    def require(self, address: str) -> None:
        """Raises OutOfReachError."""
        if self.private is None:
            return
        found = ip_address(address.partition("%")[0])  # without the name of an interface
        if isinstance(found, IPv6Address) and found.ipv4_mapped:
            found = found.ipv4_mapped
        if found.is_global and not found.is_multicast:
            return
        if not any(found in network for network in self.private if network.version == found.version):
            raise OutOfReachError

    def open_socket(self, info: tuple[Any, ...]) -> socket.socket:
        """A socket for one of `getaddrinfo`'s answers; raises OutOfReachError."""
        self.require(info[4][0])
        return socket.socket(family=info[0], type=info[1], proto=info[2])

    def connect(self, host: str, port: int, timeout: float) -> socket.socket:
        """A connection to the first of the host's addresses that answers; raises OSError."""
        if self.private is None:
            return socket.create_connection((host, port), timeout)
        failure: OSError = OutOfReachError()
        for *_, place in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            try:
                self.require(str(place[0]))
                return socket.create_connection((str(place[0]), port), timeout)
            except OSError as error:
                failure = error
        raise failure


ANYWHERE = Reach()


def reach_of(words: Sequence[str]) -> Reach:
    """As the setting says it: `all`, `none`, or networks such as 10.1.2.0/24; raises ValueError."""
    if list(words) == ["all"]:
        return ANYWHERE
    return Reach(() if list(words) == ["none"] else tuple(ip_network(word) for word in words))
