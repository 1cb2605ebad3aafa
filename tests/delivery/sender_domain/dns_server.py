"""A DNS server of our own, over UDP and TCP: it speaks the real protocol, and misbehaves if told to."""

import socketserver
import struct
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import dns.flags
import dns.message
import dns.rcode
import dns.rrset
from dns.rdatatype import TXT


class DnsServer:
    """Answers for the TXT records that it is given; `silent` names get no answer, `broken` ones SERVFAIL."""

    def __init__(self, records: Mapping[str, Sequence[str]]) -> None:
        self.records = {name.lower(): list(texts) for name, texts in records.items()}
        self.silent: set[str] = set()
        self.broken: set[str] = set()
        self.asked: list[str] = []
        self.port = 0

    def answer(self, question: bytes, *, most: int) -> bytes | None:
        query = dns.message.from_wire(question)
        name = query.question[0].name.to_text().rstrip(".").lower()
        self.asked.append(name)
        if name in self.silent:
            return None
        response = dns.message.make_response(query)
        if name in self.broken:
            response.set_rcode(dns.rcode.SERVFAIL)
        elif texts := self.records.get(name):
            quoted = [
                " ".join(f'"{text[at : at + 200]}"' for at in range(0, len(text), 200)) for text in texts
            ]
            response.answer.append(dns.rrset.from_text(f"{name}.", 60, "IN", TXT, *quoted))
        elif not any(known.endswith(f".{name}") for known in self.records):
            response.set_rcode(dns.rcode.NXDOMAIN)
        try:
            return response.to_wire(max_size=most)
        except dns.exception.TooBig:
            response.answer.clear()
            response.flags |= dns.flags.TC  # ask again over TCP
            return response.to_wire()


@contextmanager
def serving(records: Mapping[str, Sequence[str]]) -> Iterator[DnsServer]:
    """Run a server on a free port of this machine, over both protocols."""
    server = DnsServer(records)

    class Udp(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            question, line = self.request
            if (answer := server.answer(question, most=512)) is not None:
                line.sendto(answer, self.client_address)

    class Tcp(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            (length,) = struct.unpack("!H", self.rfile.read(2))
            if (answer := server.answer(self.rfile.read(length), most=65_535)) is not None:
                self.wfile.write(struct.pack("!H", len(answer)) + answer)

    with (
        socketserver.ThreadingUDPServer(("127.0.0.1", 0), Udp) as udp,
        socketserver.ThreadingTCPServer(("127.0.0.1", udp.server_address[1]), Tcp) as tcp,
    ):
        server.port = udp.server_address[1]
        for each in (udp, tcp):
            threading.Thread(target=each.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield server
        finally:
            udp.shutdown()
            tcp.shutdown()
