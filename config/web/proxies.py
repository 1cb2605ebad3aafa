"""Finds the address of the sender of a request, behind proxies that we trust and no others.

A proxy writes the address of its client at the end of `X-Forwarded-For`. Everything further left was sent by the
client itself, and may be false. So the header is read from its end, for as long as we trust the sender.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest, HttpResponse

Network = IPv4Network | IPv6Network
IPAddress = IPv4Address | IPv6Address

# Headers that a client can send to pretend to be somebody else.
CLAIMS = (
    "HTTP_X_FORWARDED_FOR",
    "HTTP_X_REAL_IP",
    "HTTP_X_CLIENT_IP",
    "HTTP_CLIENT_IP",
    "HTTP_TRUE_CLIENT_IP",
    "HTTP_X_CLUSTER_CLIENT_IP",
    "HTTP_CF_CONNECTING_IP",
    "HTTP_FASTLY_CLIENT_IP",
    "HTTP_X_FORWARDED",
    "HTTP_FORWARDED_FOR",
    "HTTP_FORWARDED",
    "HTTP_VIA",
    "X_FORWARDED_FOR",
)
NONE = ["none"]
ADDRESS_BITS_V6 = 64  # one household or server has a whole network of these


def networks_of(words: Sequence[str], *, setting: str = "TRUSTED_PROXIES") -> tuple[Network, ...]:
    """Read the networks of a setting; raise ImproperlyConfigured."""
    if list(words) == NONE:
        return ()
    try:
        return tuple(ip_network(word) for word in words)
    except ValueError as error:
        raise ImproperlyConfigured(
            f"{setting}: {error}. Write addresses or networks, as 10.1.2.3 or 10.1.2.0/24, or none."
        ) from error


def client_address(peer: str, forwarded: str, trusted: Iterable[Network]) -> str:
    """Return the sender of the request: `peer`, or the address that the trusted proxies name in `X-Forwarded-For`."""
    networks = tuple(trusted)
    found = peer
    for claim in reversed(forwarded.split(",")):
        if not _is_trusted(found, networks):
            break
        address = _read(claim)
        if address is None:
            break
        found = str(address)
    return found


def network_of(address: str) -> str:
    """Return the unit that counts as one sender: an IPv4 address, or the /64 network of an IPv6 address."""
    found = _read(address)
    if isinstance(found, IPv6Address):
        return str(ip_network((found, ADDRESS_BITS_V6), strict=False).network_address)
    return str(found) if found else "0.0.0.0"  # noqa: S104 - nobody's address, and nothing listens on it


class ForwardedAddress:
    """Sets REMOTE_ADDR to the true sender, and removes every header that claims another one."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        meta = request.META
        forwarded = meta.get("HTTP_X_FORWARDED_FOR", "")
        # A proxy on a Unix socket has no address, and nobody else reaches that socket.
        peer = meta.get("REMOTE_ADDR") or "127.0.0.1"
        meta["REMOTE_ADDR"] = client_address(peer, forwarded, _trusted())
        for name in CLAIMS:
            meta.pop(name, None)
        return self.get_response(request)


def login_address(request: HttpRequest) -> str:
    """Return the sender whose failed logins are counted together."""
    return network_of(request.META.get("REMOTE_ADDR", ""))


def _trusted() -> tuple[Network, ...]:
    return _networks(tuple(settings.TRUSTED_PROXIES))


@cache
def _networks(words: tuple[str, ...]) -> tuple[Network, ...]:
    return networks_of(words)


def _is_trusted(address: str, networks: Sequence[Network]) -> bool:
    found = _read(address)
    return found is not None and any(found in network for network in networks)


def _read(claim: str) -> IPAddress | None:
    """Read an address as proxies write it: alone, with a port, or an IPv6 address in brackets."""
    text = claim.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        found = ip_address(text)
    except ValueError:
        return None
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return mapped or found
