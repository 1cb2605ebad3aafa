"""How many bytes leave the worker for a file that goes to a thousand groups: inside each message, or by its address.

The bytes are counted where they leave, by the system for each socket of the worker, and where they arrive.
"""

import asyncio
import hashlib
import io
import socket
import struct
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks.files.gateway import FetchingGateway, fetching_gateway
from delivery.file_addresses import tokens
from delivery.file_addresses.tokens import Ticket
from delivery.outcomes import Sent
from delivery.transports import kinds
from delivery.transports.base import Fetching, FileAddress, MediaRef, Message
from delivery.transports.http.exchange import open_session
from delivery.transports.networks.allowed import AllowedNetworks

GROUPS = 1000
FILE_BYTES = 5 * 10**6
AT_ONCE = 3  # as GROUP_CONCURRENCY
KINDS: Mapping[str, Mapping[str, str]] = {
    "waha": {"api_key": "k"},
    "evolution": {"api_key": "k", "instance": "i"},
}
BYTES_ACKED = 120  # where Linux has `tcpi_bytes_acked` in its TCP_INFO
MB = 10**6


@dataclass(frozen=True, slots=True)
class WatchedNetworks(AllowedNetworks):
    """Keeps a second handle of each socket, so that the system can be asked about it at the end."""

    sockets: list[socket.socket] = field(default_factory=list)

    def open_socket(self, info: tuple[Any, ...]) -> socket.socket:
        found = AllowedNetworks.open_socket(self, info)
        self.sockets.append(found.dup())
        return found

    def bytes_left(self) -> int:
        """Return the bytes that the other side acknowledged, without the one that opened each connection."""
        infos = [each.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256) for each in self.sockets]
        return sum(int(struct.unpack_from("Q", info, BYTES_ACKED)[0]) - 1 for info in infos)

    def close(self) -> None:
        for each in self.sockets:
            each.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    left: int
    arrived: int
    fetched: int
    seconds: float


def measure(groups: int = GROUPS) -> dict[str, dict[str, Counted]]:
    """Return what each kind of transport cost, inside the messages and by address."""
    found: dict[str, dict[str, Counted]] = {}
    for kind in KINDS:
        with fetching_gateway(FILE_BYTES) as gateway:
            found[kind] = {
                how: asyncio.run(_sent(kind, gateway, groups, by_address=how == "address"))
                for how in ("address", "inside")
            }
    return found


def as_mb(found: Mapping[str, Mapping[str, Counted]]) -> dict[str, dict[str, float]]:
    """Return the megabytes that left the worker, by kind and way, and check that all of them arrived."""
    for ways in found.values():
        for counted in ways.values():
            assert counted.left == counted.arrived, counted
    return {
        kind: {how: round(counted.left / MB, 2) for how, counted in ways.items()}
        for kind, ways in found.items()
    }


async def _sent(kind: str, gateway: FetchingGateway, groups: int, *, by_address: bool) -> Counted:
    networks = WatchedNetworks()
    before = gateway.bytes_so_far()
    started = time.perf_counter()
    async with open_session(networks=networks) as session:
        transport = kinds()[kind]({**KINDS[kind], "base_url": gateway.url}, session)
        places = asyncio.Semaphore(AT_ONCE)

        async def send(number: int) -> None:
            async with places:
                outcome = await transport.send(_message(gateway, by_address=by_address), f"key-{number}")
            assert isinstance(outcome, Sent), outcome

        await asyncio.gather(*(send(number) for number in range(groups)))
        seconds = time.perf_counter() - started
        left = networks.bytes_left()
    after = gateway.bytes_so_far()
    networks.close()
    return Counted(left=left, arrived=after[0] - before[0], fetched=after[1] - before[1], seconds=seconds)


class _Deaf(Fetching):
    def worked(self) -> None:
        return

    def failed(self, words: str) -> None:
        raise AssertionError(words)

    def in_doubt(self, words: str) -> None:
        raise AssertionError(words)


def _message(gateway: FetchingGateway, *, by_address: bool) -> Message:
    media = MediaRef(
        sha256=hashlib.sha256(CONTENT).hexdigest(),
        filename="leaflet.png",
        content_type="image/png",
        open=lambda: io.BytesIO(CONTENT),
        address=FileAddress(url=f"{gateway.file_url}{tokens.url_of(TICKET)}", fetching=_Deaf())
        if by_address
        else None,
    )
    return Message(
        address="120363000000000001@g.us", kind="media", text="The bus leaves at nine.", media=media
    )


CONTENT = bytes(FILE_BYTES)
TICKET = Ticket(file="ab/" + "ab" * 32, content_type="image/png", account_id=7, run_id=12, until=2**31)
