"""Typing before a message: for as long as its text takes, inside the gap, and never at the cost of a message."""

import asyncio
import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import Settings

from accounts.recipients import consent
from delivery.engine import pump
from delivery.engine.shift.typing import GIVES_UP, LONGEST, SHARE_OF_GAP, SHORTEST, Typing, seconds_of_typing
from delivery.outcomes import Unreachable
from delivery.transports.base import UnansweredError
from delivery.transports.sandbox.send import SandboxTransport
from sandbox.log import Line, read
from tests.delivery.stage import Stage, counted, pumping, serve

CREDENTIALS = {"base_url": "http://127.0.0.1:1", "account": "a", "token": "t"}
Deed = Callable[[], None]


@pytest.mark.parametrize(
    ("letters", "gap", "seconds"),
    [
        (0, 60, 1.0),
        (60, 60, 5.0),
        (4_000, 60, LONGEST),
        (60, 3, SHARE_OF_GAP * 3),
        (60, 0.5, 0.0),
        (60, 0, 0.0),
    ],
)
def test_typing_grows_with_the_text_and_stays_inside_the_gap(
    letters: int, gap: float, seconds: float
) -> None:
    assert seconds_of_typing(letters, gap) == pytest.approx(seconds)


@given(st.integers(0, 20_000), st.floats(0, 600))
def test_typing_is_never_as_long_as_the_gap(letters: int, gap: float) -> None:
    seconds = seconds_of_typing(letters, gap)
    assert seconds == 0 or SHORTEST <= seconds <= min(LONGEST, SHARE_OF_GAP * gap)


class Shows(SandboxTransport):
    """Notes what it is asked to show, and misbehaves if told to."""

    def __init__(self, *, error: Exception | None = None, hangs: bool = False) -> None:
        super().__init__(CREDENTIALS, None)
        self.error, self.hangs = error, hangs
        self.shown: list[str] = []

    async def start_typing(self, address: str, seconds: float) -> None:
        self.shown.append(f"typing {address}")
        if self.error:
            raise self.error
        if self.hangs:
            await asyncio.sleep(60)

    async def stop_typing(self, address: str) -> None:
        self.shown.append(f"paused {address}")


async def allowed() -> bool:
    return True


async def show(typing: Typing, address: str = "+49", seconds: float = 0.6) -> float:
    """Show typing, wait for its end, and return the seconds that it took."""
    began = time.monotonic()
    typing.start(address, until=began + seconds, allowed=allowed)
    if typing._task is not None:
        await typing._task
    return time.monotonic() - began


async def test_typing_begins_and_ends() -> None:
    transport = Shows()
    await show(Typing(transport))
    assert transport.shown == ["typing +49", "paused +49"]


async def test_a_service_that_hangs_is_not_waited_for() -> None:
    transport = Shows(hangs=True)
    await show(Typing(transport))
    assert transport.shown == ["typing +49", "paused +49"]


@pytest.mark.parametrize("error", [UnansweredError(Unreachable(reason="down")), ValueError("a bug")])
async def test_a_service_that_fails_is_left_alone_after_some_tries(error: Exception) -> None:
    transport = Shows(error=error)
    typing = Typing(transport)
    for _ in range(GIVES_UP + 2):
        await show(typing)
    assert transport.shown.count("typing +49") == GIVES_UP


async def test_typing_is_shown_in_one_chat_at_a_time_and_not_too_late() -> None:
    transport = Shows()
    typing = Typing(transport)
    typing.start("+1", until=time.monotonic() + 5, allowed=allowed)
    typing.start("+2", until=time.monotonic() + 5, allowed=allowed)
    await asyncio.sleep(0)
    await typing.stop()
    typing.start("+3", until=time.monotonic() + 0.3, allowed=allowed)
    await asyncio.sleep(0)
    assert transport.shown == ["typing +1"]


def lines_of(stage: Stage, name: str) -> list[Line]:
    return [line for line in read(stage.gateway.log) if line["account"] == name]


def test_the_chat_is_seen_and_typed_in_before_each_message(stage: Stage, quick: Settings) -> None:
    quick.HORIZON_SECONDS, quick.PUMP_SECONDS = 20, 20
    account = stage.account(shows_typing=True, limits={"gap_min": 1.5, "gap_max": 1.5})
    run = serve(stage.fire(account, to=3), account)
    assert counted(run) == {"sent": 3}
    lines = lines_of(stage, account.credentials["account"])
    for message in [line for line in lines if line["kind"] == "message"][1:]:  # the first one leaves at once
        before = [line["text"] for line in lines if line["to"] == message["to"] and line["kind"] == "typing"]
        assert before == ["seen", "typing", "paused"]
        shown = [line["at"] for line in lines if line["to"] == message["to"]]
        assert shown == sorted(shown)
        assert shown[-1] == message["at"]


def test_nobody_who_may_not_get_the_message_any_more_sees_typing(stage: Stage, quick: Settings) -> None:
    quick.HORIZON_SECONDS, quick.PUMP_SECONDS = 60, 60
    account = stage.account(shows_typing=True, limits={"gap_min": 5, "gap_max": 5})
    people = stage.recipients(3)
    run = stage.fire(account, to=people)
    with pumping(stage, account, after=1):
        for person in people[1:]:
            consent.opt_out(person, how="Wrote STOP.")
    serve(run, account)
    lines = lines_of(stage, account.credentials["account"])
    assert {line["to"] for line in lines} == {people[0].address}
    assert counted(run) == {"sent": 1, "skipped": 2}


def test_no_message_waits_for_typing_and_none_is_lost_by_it(
    stage: Stage, quick: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick.HORIZON_SECONDS, quick.PUMP_SECONDS = 20, 20

    async def hang(*_: object) -> None:
        await asyncio.sleep(600)

    monkeypatch.setattr(SandboxTransport, "start_typing", hang)
    monkeypatch.setattr(SandboxTransport, "stop_typing", hang)
    account = stage.account(shows_typing=True, limits={"gap_min": 1.0, "gap_max": 1.0})
    run = stage.fire(account, to=3)
    began = time.monotonic()
    pump.pump(account.pk)
    assert counted(run) == {"sent": 3}
    times = [line["at"] for line in stage.delivered(account)]
    assert times[-1] - times[0] < 1000 * (time.monotonic() - began)
    assert len(times) == 3


def test_an_account_shows_no_typing_unless_it_is_switched_on(stage: Stage, quick: Settings) -> None:
    quick.HORIZON_SECONDS = 20
    account = stage.account(limits={"gap_min": 1.0, "gap_max": 1.0})
    serve(stage.fire(account, to=2), account)
    lines = lines_of(stage, account.credentials["account"])
    assert [line for line in lines if line["kind"] == "typing"] == []
