"""Waiting for the time of a message costs one timer, and a message that never ends is given up."""

import asyncio
import time
from datetime import UTC, datetime
from itertools import pairwise
from types import SimpleNamespace

import pytest
import uvloop

from delivery.engine import loop as looping
from delivery.engine.loop import Landed, SendLoop, SendRequest
from delivery.engine.shift.alarm import EXACT_MS, STEP_MS, Alarm
from delivery.engine.shift.launch import Launches
from delivery.engine.shift.outgoing import Outgoing
from delivery.outcomes import HeldBack, Outcome, Sent, Unknown
from delivery.transports.base import Message
from tests.delivery.engine.test_last_look import Desk, leave, look_with


def rung(*delays: float, step_ms: int, canceled: int = 0) -> list[float]:
    """Return for how long each call of an alarm really waits, but for those that are taken back."""
    rang: list[float] = []

    async def wait() -> None:
        alarm, start = Alarm(), time.monotonic()
        for number, delay in enumerate(delays):
            call = alarm.at(start + delay, lambda: rang.append(time.monotonic() - start), step_ms=step_ms)
            if number < canceled:
                call.cancel()
        await asyncio.sleep(max(delays) + 0.1)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(wait())
    return rang


@pytest.mark.parametrize("step_ms", [EXACT_MS, STEP_MS])
def test_no_call_is_early(step_ms: int) -> None:
    delays = [part / 10_000 for part in range(1, 500, 7)]
    rang = rung(*delays, step_ms=step_ms)
    assert len(rang) == len(delays)
    assert [delay for delay, waited in zip(delays, rang, strict=True) if waited < delay] == []


def test_calls_of_one_step_come_together() -> None:
    rang = rung(*[part / 1000 for part in range(100)], step_ms=STEP_MS)
    wakes = sum(after - before > 0.005 for before, after in pairwise(rang))
    assert wakes <= 100 / STEP_MS


def test_a_call_that_is_taken_back_does_not_come() -> None:
    assert len(rung(0.01, 0.01, 0.02, step_ms=STEP_MS, canceled=2)) == 1


def test_a_call_that_fails_keeps_no_other_from_coming() -> None:
    came: list[bool] = []

    def fail() -> None:
        raise RuntimeError

    async def wait() -> None:
        alarm, soon = Alarm(), time.monotonic() + 0.01
        alarm.at(soon, fail)
        alarm.at(soon, lambda: came.append(True))
        await asyncio.sleep(0.1)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(wait())
    assert came == [True]


class Leaves(Launches):
    """Counts how often a message that waits is looked at; nothing is sent."""

    def __init__(self) -> None:
        self.state = SimpleNamespace(  # type: ignore[assignment]
            lost=False, agenda=SimpleNamespace(dropped=0), alarm=Alarm()
        )
        self.looks = 0
        self.left: list[float] = []

    def _send_later(self, outgoing: Outgoing, *, dropped: int) -> None:
        self.looks += 1
        super()._send_later(outgoing, dropped=dropped)

    def _send(self, messages: object) -> None:
        self.left.append(time.monotonic())


def test_a_message_that_waits_for_its_time_is_not_looked_at_again_and_again() -> None:
    messages = 20
    leaves, start = Leaves(), time.monotonic()
    moments = [start + 0.02 + number * 0.0013 for number in range(messages)]

    async def launch() -> None:
        for at in moments:
            leaves._send_later(SimpleNamespace(at=at), dropped=0)  # type: ignore[arg-type]
        await asyncio.sleep(0.2)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(launch())
    assert all(left >= at for left, at in zip(leaves.left, moments, strict=True))
    assert leaves.looks == 2 * messages  # when it is set, and when it is over


class Hangs:
    """A transport that never answers, and takes a while to give up."""

    kind = "hangs"
    timeouts = SimpleNamespace(total=-2.0, upload=-2.0)  # over at once

    def __init__(self) -> None:
        self.canceled = 0

    async def send(self, _message: Message, _key: str) -> Outcome:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            self.canceled += 1
            await asyncio.sleep(0.1)
            raise
        return Sent()


def request(**values: object) -> SendRequest:
    message = Message(address="+60123456789", kind="text", text="Hello")
    return SendRequest(tag=1, message=message, key="k", **values)  # type: ignore[arg-type]


@pytest.mark.parametrize("asks", [False, True], ids=["by its service", "by its last look"])
def test_a_message_that_never_ends_is_given_up_once(monkeypatch: pytest.MonkeyPatch, *, asks: bool) -> None:
    monkeypatch.setattr(looping, "SWEEP", 0.02)
    loop, transport, landed = SendLoop(), Hangs(), list[Landed]()
    desk = Desk(leave)
    desk.slow = 60.0

    async def launch() -> None:
        made = request(look=look_with(desk, age=5.0)) if asks else request()
        loop.launch(transport, [made], landed.append)  # type: ignore[arg-type]

    loop.run(launch())
    until = time.monotonic() + 10
    while (not landed or loop._carrying) and time.monotonic() < until:
        time.sleep(0.01)
    [found] = landed
    if asks:
        assert isinstance(found.outcome, HeldBack), "nothing has left"
    else:
        assert found.outcome == Unknown(reason="no answer in time")
        assert transport.canceled == 1
    assert not loop._carrying
    loop._loop.call_soon_threadsafe(loop._loop.stop)


def test_a_message_in_time_is_not_given_up() -> None:
    landed: list[Landed] = []

    class Answers(Hangs):
        timeouts = SimpleNamespace(total=5.0, upload=5.0)

        async def send(self, _message: Message, _key: str) -> Outcome:
            return Sent(provider_id=str(datetime.now(UTC)))

    loop = SendLoop()

    async def launch() -> None:
        loop.launch(Answers(), [request(), request()], landed.append)  # type: ignore[arg-type]

    loop.run(launch())
    until = time.monotonic() + 10
    while len(landed) < 2 and time.monotonic() < until:
        time.sleep(0.01)
    assert [type(each.outcome) for each in landed] == [Sent, Sent]
    loop._loop.call_soon_threadsafe(loop._loop.stop)
