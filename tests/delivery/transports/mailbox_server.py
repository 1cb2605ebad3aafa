"""A small mailbox that speaks as much IMAP as is needed to read it, in the test's own event loop."""

import asyncio
import re
from typing import Self

from tests.delivery.transports.harness import SECRET

USER = "news@school.example"


class MailboxServer:
    def __init__(self) -> None:
        self.messages: dict[int, bytes] = {}
        self.validity = 7
        self.commands: list[str] = []
        self.garbage = False
        self.boasts = 0  # how long it says that a message is, where not as long as it is

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._converse, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *error: object) -> None:
        self._server.close()

    @property
    def port(self) -> int:
        return int(self._server.sockets[0].getsockname()[1])

    def receive(self, message: bytes) -> None:
        self.messages[max(self.messages, default=0) + 1] = message

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"nginx!\r\n" if self.garbage else b"* OK ready\r\n")
        while line := (await reader.readline()).decode().rstrip():
            tag, _, command = line.partition(" ")
            self.commands.append(command.split(" ")[0])
            said, result = self._answer(command)
            writer.write(said + f"{tag} {result}\r\n".encode())
            if command == "LOGOUT":
                break
        await writer.drain()
        writer.close()

    def _answer(self, command: str) -> tuple[bytes, str]:
        match command.split(" ", 2):
            case ["CAPABILITY"]:
                return b"* CAPABILITY IMAP4rev1\r\n", "OK done"
            case ["LOGIN", user, password]:
                return b"", "OK in" if (user, password) == (
                    USER,
                    f'"{SECRET}"',
                ) else f"NO {password} is wrong"
            case ["EXAMINE", _]:
                head = f"* {len(self.messages)} EXISTS\r\n* OK [UIDVALIDITY {self.validity}] here\r\n"
                return head.encode(), "OK [READ-ONLY] done"
            case ["UID", verb, what]:
                return self._search(what) if verb == "SEARCH" else self._fetch(what), "OK done"
            case ["LOGOUT"]:
                return b"* BYE\r\n", "OK done"
        return b"", "BAD what?"

    def _search(self, which: str) -> bytes:
        first = int(found[1]) if (found := re.search(r"(\d+):\*", which)) else 10**9
        last = max(self.messages, default=0)
        numbers = [number for number in self.messages if number >= min(first, last)]
        return f"* SEARCH {' '.join(map(str, numbers))}\r\n".encode()

    def _fetch(self, what: str) -> bytes:
        found = re.fullmatch(r"(\d+) \(BODY\.PEEK\[\]<0\.(\d+)>\)", what)
        assert found is not None, what
        content = self.messages[int(found[1])][: int(found[2])]
        return b"* 1 FETCH (UID %s BODY[]<0> {%d}\r\n%s)\r\n" % (
            found[1].encode(),
            self.boasts or len(content),
            content,
        )
