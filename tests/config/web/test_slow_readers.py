"""Answers in pieces wait for their reader, but not for ever."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from config.web import slow_readers
from config.web.slow_readers import PatientServer, Valve

PIECE = {"type": "http.response.body", "body": b"piece", "more_body": True}


class Request:
    """An answer in progress, as Daphne has it. Its reader takes what it is given, or nothing of it."""

    finished = False
    producer: Valve | None = None

    def __init__(self, *, takes: bool) -> None:
        self._takes = takes
        self.sent, self.cut = 0, False
        self.channel = SimpleNamespace(transport=SimpleNamespace(abortConnection=self._abort))

    def registerProducer(self, producer: Valve, streaming: bool) -> None:  # noqa: N802 - Twisted's
        self.producer = producer

    def handle_reply(self, message: dict[str, Any]) -> None:
        self.sent += 1
        if not self._takes and self.producer is not None:
            self.producer.pauseProducing()

    def _abort(self) -> None:
        self.cut = True


@pytest.mark.parametrize("takes", [True, False])
def test_a_reader_that_takes_nothing_is_cut_off(*, takes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slow_readers, "LONGEST_STALL", 0.02)
    request, server = Request(takes=takes), PatientServer.__new__(PatientServer)
    server.connections = {request: {}}
    asyncio.run(asyncio.wait_for(server.handle_reply(request, PIECE), 5))
    assert (request.sent, request.cut) == (1, not takes)
