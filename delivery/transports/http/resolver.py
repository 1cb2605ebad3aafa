"""Looks up names for aiohttp, in threads that owners share."""

import asyncio
import socket

from aiohttp.abc import AbstractResolver, ResolveResult

from delivery.transports.networks.names import start_looking_up


class Resolver(AbstractResolver):
    """Looks names up outside the threads of the event loop, of which there are only a few."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Return the addresses of a host; raise OSError."""
        infos = await asyncio.wrap_future(start_looking_up(host, port, family, socket.AI_ADDRCONFIG))
        return [
            ResolveResult(
                hostname=host,
                host=str(place[0]),
                port=int(place[1]),
                family=found,
                proto=protocol,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for found, _, protocol, _, place in infos
        ]

    async def close(self) -> None:
        """Close nothing: the threads are shared by all."""
