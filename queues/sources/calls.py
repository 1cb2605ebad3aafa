"""Sends the requests of the vendors' client libraries, under the rules of every other connection of Paceline.

notion-client uses httpx and gspread uses requests. Both hand a request over here, so that the same holds for both: the
address of a connection is checked right before it is made, redirects are not followed, no proxy of the environment is
used, and an answer has a limit of time and of size. A Trouble raised here passes through the libraries as it is.
"""

import io
import socket
import time
from collections.abc import Mapping
from typing import Any

import httpx
import requests
import urllib3
from django.conf import settings
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection

from delivery.sessions import calls
from delivery.transports.networks.allowed import AddressNotAllowedError, allowed_networks
from delivery.transports.networks.errors import Step, describe_connection_error
from delivery.transports.networks.names import connect
from queues.sources.troubles import AwayError, StoppedError

CONNECT_SECONDS, READ_SECONDS, TOTAL_SECONDS = 5.0, 20.0, 30.0
LONGEST_ANSWER = 48 * 2**20
PIECE = 64 * 1024


class AnswerTooLongError(AwayError):
    """The answer is longer than what is read; fewer rows at once may fit."""


class _Checked(HTTPConnection):
    def _new_conn(self) -> socket.socket:
        return _connected(self.host, self.port)


class _CheckedTLS(HTTPSConnection):
    def _new_conn(self) -> socket.socket:
        return _connected(self.host, self.port)


class _NotAllowedError(Exception):
    """Not an OSError: urllib3 would take it for a broken connection."""


def _connected(host: str, port: int) -> socket.socket:
    networks = allowed_networks(settings.PRIVATE_NETWORKS)
    try:
        line = connect(networks, host.strip("[]"), port, CONNECT_SECONDS)
    except AddressNotAllowedError as error:
        raise _NotAllowedError from error
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # head and body of a request leave at once
    return line


class _Pool(urllib3.HTTPConnectionPool):
    ConnectionCls = _Checked


class _TLSPool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _CheckedTLS


class Line:
    """Connections for the requests of one piece of work."""

    def __init__(self, service: str) -> None:
        self._service = service
        self._pools = urllib3.PoolManager(num_pools=4, retries=False)
        self._pools.pool_classes_by_scheme = {"http": _Pool, "https": _TLSPool}

    def ask(
        self, method: str, url: str, *, headers: Mapping[str, str], body: bytes | None
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Send a request and return the status, the headers and the body of the answer.

        Raises a TroubleError, and BusyError where the person who waits for a page has too many calls under way.
        """
        with calls.calling():
            calls.release_connection()
            return self._asked(method, url, headers, body)

    def _asked(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None
    ) -> tuple[int, Mapping[str, str], bytes]:
        until = time.monotonic() + TOTAL_SECONDS
        try:
            answer = self._pools.request(
                method,
                url,
                body=body,
                headers=dict(headers),
                timeout=urllib3.Timeout(connect=CONNECT_SECONDS, read=READ_SECONDS),
                retries=False,
                redirect=False,
                preload_content=False,
            )
            try:
                found = answer.status, dict(answer.headers), self._read(answer, until)
            finally:
                answer.close()
        except _NotAllowedError as error:
            raise StoppedError(f"{self._service} leads to an address that is not allowed here.") from error
        except (urllib3.exceptions.HTTPError, OSError) as error:
            place = urllib3.util.parse_url(url)
            why = describe_connection_error(error, place.host or "", place.port, Step.SEND)
            raise AwayError(f"{self._service} cannot be reached: {why}.") from error
        if 300 <= found[0] < 400:  # a redirect would carry the token to another host
            raise AwayError(f"{self._service} leads to another address (status {found[0]}).")
        return found

    def _read(self, answer: urllib3.BaseHTTPResponse, until: float) -> bytes:
        body = bytearray()
        for piece in answer.stream(PIECE, decode_content=True):
            body += piece
            if len(body) > LONGEST_ANSWER:
                raise AnswerTooLongError(f"{self._service} answers with too much at once.")
            if time.monotonic() > until:
                raise AwayError(f"{self._service} answers too slowly.")
        return bytes(body)

    def close(self) -> None:
        self._pools.clear()


# What belongs to a connection, and not to what was said; the body is unpacked by then.
_OF_THE_LINE = frozenset(
    {"content-encoding", "transfer-encoding", "connection", "keep-alive", "content-length"}
)


def _said(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() not in _OF_THE_LINE}


class ForHttpx(httpx.BaseTransport):
    """Lets an httpx client send through a line."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        headers = {name: value for name, value in request.headers.items() if name.lower() != "host"}
        status, said, body = self._line.ask(
            request.method, str(request.url), headers=headers, body=request.read() or None
        )
        return httpx.Response(status, headers=_said(said), content=body, request=request)

    def close(self) -> None:
        self._line.close()


class ForRequests(HTTPAdapter):
    """Lets a session of requests send through a line, with other hosts than those that its library knows."""

    def __init__(self, line: Line, hosts: Mapping[str, str]) -> None:
        super().__init__()
        self._line, self._hosts = line, hosts

    def send(self, request: requests.PreparedRequest, *_: Any, **__: Any) -> requests.Response:
        body = request.body.encode() if isinstance(request.body, str) else request.body
        if body is not None and not isinstance(body, bytes):
            raise TypeError("A request of a source has its whole body at once.")
        headers = {name: str(value) for name, value in request.headers.items()}
        status, said, found = self._line.ask(
            request.method or "GET", self._address(request.url or ""), headers=headers, body=body or None
        )
        answer = urllib3.HTTPResponse(
            io.BytesIO(found), headers=_said(said), status=status, preload_content=False
        )
        return self.build_response(request, answer)

    def _address(self, url: str) -> str:
        for known, other in self._hosts.items():
            if url.startswith(f"{known}/"):
                return other + url.removeprefix(known)
        raise StoppedError("This address does not belong to the service.")

    def close(self) -> None:
        self._line.close()
        super().close()
