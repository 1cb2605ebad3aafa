"""Keeps connections to gateways for the next message, and opens new ones."""

import asyncio
import socket
import ssl
from functools import cached_property
from ipaddress import ip_address
from typing import Any, NamedTuple

import aiohappyeyeballs
import aiohttp
from aiohttp.client_reqrep import ConnectionKey
from yarl import URL

from delivery.transports.http.connection import Connection
from delivery.transports.http.resolver import Resolver
from delivery.transports.networks.allowed import AllowedNetworks

# Gateways on Node close a connection that was idle for 5 s. A message that is written at that moment is left in
# doubt, so we close the connection earlier.
KEEP_ALIVE = 4.0
SWEEP = 1.0  # seconds between two looks for connections that were idle for too long
NEXT_ADDRESS = 0.25  # seconds after which the next address of a host is tried as well


class Place(NamedTuple):
    """Where a connection leads."""

    secure: bool
    host: str
    port: int

    @classmethod
    def of(cls, url: URL) -> "Place":
        return cls(url.scheme == "https", url.raw_host or "", url.port or 0)


class Pool:
    """The connections of one event loop; accounts share them."""

    def __init__(self, networks: AllowedNetworks) -> None:
        self._networks = networks
        self._resolver = Resolver()
        self._idle: dict[Place, list[Connection]] = {}
        self._sweeping: asyncio.TimerHandle | None = None

    async def take(self, place: Place, *, connect: float) -> Connection:
        """Return a connection of the caller's own; raise what aiohttp raises where there can be none."""
        now = asyncio.get_running_loop().time()
        idle = self._idle.get(place, [])
        while idle:
            connection = idle.pop()
            if not connection.closed and now - connection.idle_since < KEEP_ALIVE:
                return connection
            connection.close()
        return await self.open(place, connect=connect)

    async def open(self, place: Place, *, connect: float) -> Connection:
        """Return a new connection; raise what aiohttp raises."""
        try:
            async with asyncio.timeout(connect):
                return await self._open(place)
        except TimeoutError as error:
            raise aiohttp.ConnectionTimeoutError from error

    def give_back(self, place: Place, connection: Connection) -> None:
        """Keep a connection for the next message, unless it is closed."""
        if connection.closed:
            return
        loop = asyncio.get_running_loop()
        connection.idle_since = loop.time()
        self._idle.setdefault(place, []).append(connection)
        if self._sweeping is None:
            self._sweeping = loop.call_later(SWEEP, self._sweep)

    def close(self) -> None:
        """Close the connections that nobody uses."""
        if self._sweeping is not None:
            self._sweeping.cancel()
            self._sweeping = None
        for idle in self._idle.values():
            for connection in idle:
                connection.close()
        self._idle.clear()

    def _sweep(self) -> None:
        """Close what was idle for too long."""
        loop = asyncio.get_running_loop()
        oldest = loop.time() - KEEP_ALIVE
        for place, idle in list(self._idle.items()):
            kept = []
            for connection in idle:
                if connection.closed or connection.idle_since <= oldest:
                    connection.close()
                else:
                    kept.append(connection)
            self._idle[place] = kept
        self._idle = {place: idle for place, idle in self._idle.items() if idle}
        self._sweeping = loop.call_later(SWEEP, self._sweep) if self._idle else None

    async def _open(self, place: Place) -> Connection:
        try:
            infos = await self._look_up(place)
        except (OSError, UnicodeError) as error:
            raise aiohttp.ClientConnectorDNSError(_key(place), _as_system_error(error)) from error
        try:
            return await self._connected(place, infos)
        except ssl.CertificateError as error:
            raise aiohttp.ClientConnectorCertificateError(_key(place), error) from error
        except ssl.SSLError as error:
            raise aiohttp.ClientConnectorSSLError(_key(place), error) from error
        except OSError as error:
            raise aiohttp.ClientConnectorError(_key(place), error) from error

    async def _look_up(self, place: Place) -> list[tuple[Any, ...]]:
        """Return the addresses of a host, in the form of `getaddrinfo`."""
        if _is_address(place.host):
            family = socket.AF_INET6 if ":" in place.host else socket.AF_INET
            return [(family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (place.host, place.port))]
        found = await self._resolver.resolve(place.host, place.port, socket.AF_UNSPEC)
        return [
            (each["family"], socket.SOCK_STREAM, each["proto"], "", (each["host"], each["port"]))
            for each in found
        ]

    async def _connected(self, place: Place, infos: list[tuple[Any, ...]]) -> Connection:
        loop = asyncio.get_running_loop()
        found = await aiohappyeyeballs.start_connection(
            infos,
            happy_eyeballs_delay=NEXT_ADDRESS,
            interleave=1,
            loop=loop,
            socket_factory=self._networks.open_socket,
        )
        try:
            _, connection = await loop.create_connection(
                Connection,
                sock=found,
                ssl=self._tls if place.secure else None,
                server_hostname=place.host.rstrip(".") if place.secure else None,
            )
        except BaseException:
            found.close()
            raise
        return connection

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return ssl.create_default_context()


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _key(place: Place) -> ConnectionKey:
    return ConnectionKey(place.host, place.port, place.secure, True, None, None, None)


def _as_system_error(error: OSError | UnicodeError) -> OSError:
    return error if isinstance(error, OSError) else OSError(None, str(error))
