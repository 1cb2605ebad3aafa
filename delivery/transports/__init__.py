"""The kinds of transport. To add one: write its folder, add it to `_KINDS`, pass the contract suite."""

import aiohttp

from delivery.transports.base import Credentials, Timeouts, Transport, TransportError
from delivery.transports.cloud_api.send import CloudApiTransport
from delivery.transports.email.send import EmailTransport
from delivery.transports.email_provider.send import EmailProviderTransport
from delivery.transports.evolution.send import EvolutionTransport
from delivery.transports.matrix.send import MatrixTransport
from delivery.transports.networks.allowed import ANYWHERE, AllowedNetworks
from delivery.transports.sandbox.send import SandboxTransport
from delivery.transports.unipile.send import UnipileTransport
from delivery.transports.waha.send import WahaTransport
from delivery.transports.wassenger.send import WassengerTransport

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
    """Raised when no transport has that name."""


def kinds() -> dict[str, type[Transport]]:
    """Return every kind by its name, in the order in which a form shows them."""
    return {transport.kind: transport for transport in _KINDS}


def make(
    kind: str,
    credentials: Credentials,
    session: aiohttp.ClientSession | None,
    *,
    timeouts: Timeouts | None = None,
    networks: AllowedNetworks = ANYWHERE,
    owner: int = 0,
) -> Transport:
    """Return one account's transport; without a session it only reads webhooks.

    Raise UnknownKindError or CredentialsError.
    """
    transport = kinds().get(kind)
    if transport is None:
        raise UnknownKindError(f"There is no transport named {kind}.")
    return transport(credentials, session, timeouts=timeouts, networks=networks, owner=owner)
