"""The services in words, for templates: a template would call a transport's class instead of reading it."""

from dataclasses import dataclass

from delivery.transports import kinds
from delivery.transports.base import Transport


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    kind: str
    label: str
    about: str
    proof: str


def offer(transport: type[Transport]) -> Offer:
    return Offer(kind=transport.kind, label=transport.label, about=transport.about, proof=transport.proof)


def offers(channel: str) -> list[Offer]:
    """Return the services of a channel, in their order."""
    return [offer(transport) for transport in kinds().values() if channel in transport.channels]
