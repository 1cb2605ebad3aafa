"""The kinds of transport. To add one: write its module, add it to `_KINDS`, pass the contract suite."""

import aiohttp

from delivery.reach import ANYWHERE, Reach
from delivery.transports.base import Credentials, Timeouts, Transport, TransportError
from delivery.transports.cloud_api import CloudApiTransport
from delivery.transports.email import EmailTransport
from delivery.transports.email_provider import EmailProviderTransport
from delivery.transports.evolution import EvolutionTransport
from delivery.transports.matrix import MatrixTransport
from delivery.transports.sandbox import SandboxTransport
from delivery.transports.unipile import UnipileTransport
from delivery.transports.waha import WahaTransport
from delivery.transports.wassenger import WassengerTransport

_KINDS: tuple[type[Transport], ...] = (
    WahaTransport,
    EvolutionTransport,
    CloudApiTransport,
    WassengerTransport,
    EmailTransport,
    EmailProviderTransport,
    UnipileTransport,
    MatrixTransport,
    SandboxTransport,
)


class UnknownKindError(TransportError):
    """No transport has that name."""


def kinds() -> dict[str, type[Transport]]:
    """Every kind by its name, in the order in which a form shows them."""
    return {transport.kind: transport for transport in _KINDS}


def make(
    kind: str,
    credentials: Credentials,
    session: aiohttp.ClientSession | None,
    *,
    timeouts: Timeouts | None = None,
    reach: Reach = ANYWHERE,
) -> Transport:
    """One account's transport, without a session only to read webhooks; raises UnknownKindError or CredentialsError."""
    transport = kinds().get(kind)
    if transport is None:
        raise UnknownKindError(f"There is no transport named {kind}.")
    return transport(credentials, session, timeouts=timeouts, reach=reach)
