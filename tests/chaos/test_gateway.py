"""The gateway hangs, fails, refuses and cuts connections; Paceline does as P7 says, and recovers with it."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from tests.chaos.evidence import part_keys
from tests.chaos.lab import Lab, Sender

TARGETS = 8
PACE = {"per_minute": 600}


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """The trouble of a gateway until it has received `until` requests; afterwards it works."""

    behaviour: Mapping[str, Any]
    outcome: str  # in the ledger
    until: int = 3

    @property
    def healthy(self) -> dict[str, Any]:
        return {name: type(value)() for name, value in self.behaviour.items()}


TROUBLES = {
    "hangs": Trouble(behaviour={"hang": 1.0}, outcome="unknown"),
    "hangs before it takes anything": Trouble(
        behaviour={"hang": 1.0, "hang_delivers": False}, outcome="unknown"
    ),
    "answers 500 and took nothing": Trouble(behaviour={"error_rate": 1.0}, outcome="server_error"),
    "answers 500 and took it": Trouble(behaviour={"error_rate_after": 1.0}, outcome="unknown"),
    # It says that it is not connected when it is asked, so that no further message is tried.
    "answers 503": Trouble(behaviour={"not_connected": True}, outcome="not_connected", until=1),
    "cuts its answers": Trouble(behaviour={"cut": 1.0}, outcome="unknown"),
    "answers nonsense": Trouble(behaviour={"garbage": 1.0}, outcome="unknown"),
}
Case = tuple[Sender, int]


def was_asked(sender: Sender, times: int) -> bool:
    return len(sender.seen.received()) >= times


@pytest.fixture(scope="module")
def cases(whole_lab: Lab) -> dict[tuple[str, bool], Case]:
    """Return all troubles, each with two accounts: with and without idempotency keys."""
    lab = whole_lab
    lab.want_workers(1)
    made = {}
    for name, trouble in TROUBLES.items():
        for idempotent in (True, False):
            sender = lab.add_account(idempotent=idempotent, limits=PACE, **trouble.behaviour)
            made[name, idempotent] = sender, lab.operator.fire(sender.id, targets=TARGETS)
    for (name, _), (sender, _run) in made.items():
        trouble = TROUBLES[name]
        lab.until(partial(was_asked, sender, trouble.until), f"a gateway that {name} is asked")
        lab.gateway.behave(sender.name, **trouble.healthy)
    return made


@pytest.mark.parametrize("name", TROUBLES)
def test_with_keys_everything_arrives_once_after_a_gateway_that(
    lab: Lab, cases: dict[tuple[str, bool], Case], name: str
) -> None:
    sender, run = cases[name, True]

    assert lab.settled(run).status == "success"
    assert sender.seen.arrivals() == dict.fromkeys(part_keys(lab.operator.targets(run)), 1)
    outcomes = lab.operator.outcomes(run)
    assert outcomes.count("sent") == TARGETS
    assert TROUBLES[name].outcome in outcomes


@pytest.mark.parametrize("name", TROUBLES)
def test_without_keys_nothing_arrives_twice_and_doubt_is_shown_after_a_gateway_that(
    lab: Lab, cases: dict[tuple[str, bool], Case], name: str
) -> None:
    sender, run = cases[name, False]
    in_doubt = TROUBLES[name].outcome == "unknown"

    found = lab.settled(run)
    assert found.status == ("partial" if in_doubt else "success")
    assert found.sent + found.unconfirmed == TARGETS
    assert max(sender.seen.arrivals().values()) == 1
    outcomes = lab.operator.outcomes(run)
    assert outcomes.count("unknown") == found.unconfirmed
    assert TROUBLES[name].outcome in outcomes


def test_a_rate_limit_answer_slows_the_account_down_and_holds_it_as_long_as_the_server_says(lab: Lab) -> None:
    lab.want_workers(1)
    sender = lab.add_account(limits=PACE, rate_limit=4)
    run = lab.operator.fire(sender.id, targets=TARGETS)

    lab.until(lambda: lab.operator.account(sender.id).waiting_for == "slowed", "the account is held")
    assert lab.operator.account(sender.id).slow_factor > 1
    refused = [line for line in sender.seen.received() if line["status"] == 429]
    assert 1 <= len(refused) <= 3  # those in the air together
    assert lab.operator.run(run).pending == TARGETS - 4
    assert "rate_limited" in lab.operator.outcomes(run)


@pytest.mark.soak
def test_a_rate_limited_account_goes_on_when_the_server_lets_it(lab: Lab) -> None:
    lab.want_workers(1)
    sender = lab.add_account(limits=PACE, rate_limit=4)
    run = lab.operator.fire(sender.id, targets=TARGETS)

    assert lab.settled(run, seconds=240).status == "success"
    assert sender.seen.arrivals() == dict.fromkeys(part_keys(lab.operator.targets(run)), 1)


def test_an_account_that_stays_away_goes_offline_and_comes_back_by_itself(lab: Lab) -> None:
    lab.want_workers(1)
    sender = lab.add_account(limits=PACE, not_connected=True)
    run = lab.operator.fire(sender.id, targets=TARGETS)

    lab.until(lambda: lab.operator.account(sender.id).status == "offline", "the account goes offline")
    paused = lab.operator.run(run)
    assert (paused.status, paused.pause_reason, paused.sent) == ("paused", "account_offline", 0)
    assert len(sender.seen.received()) <= 3  # those in the air together: after that it is asked how it is
    lab.gateway.behave(sender.name, not_connected=False)
    assert lab.settled(run).status == "success"
    assert sender.seen.arrivals() == dict.fromkeys(part_keys(lab.operator.targets(run)), 1)


def test_a_banned_account_stops_at_once_and_its_run_pauses(lab: Lab) -> None:
    lab.want_workers(1)
    sender = lab.add_account(limits=PACE, ban_above_per_minute=4)
    run = lab.operator.fire(sender.id, targets=20)

    lab.until(lambda: lab.operator.account(sender.id).status == "flagged", "the account is flagged")
    lab.until(lambda: lab.operator.run(run).sending == 0, "everything has landed")
    paused = lab.operator.run(run)
    assert (paused.status, paused.pause_reason) == ("paused", "account_flagged")
    assert (paused.sent, paused.pending) == (4, 16)
    assert len(sender.seen.received()) <= 7  # the four, and those that were in the air with the fifth


def test_a_gateway_that_is_down_for_a_while_costs_nothing(lab: Lab) -> None:
    lab.want_workers(1)
    sender = lab.add_account(limits=PACE, latency_ms=50)
    run = lab.operator.fire(sender.id, targets=40)
    lab.delivered(sender, 10)

    lab.gateway.kill()
    lab.gateway.start()

    assert lab.settled(run).status == "success"
    assert sender.seen.arrivals() == dict.fromkeys(part_keys(lab.operator.targets(run)), 1)


def test_what_a_hanging_gateway_held_up_is_not_made_up_for_by_a_burst(lab: Lab) -> None:
    lab.want_workers(1)
    sender = lab.add_account(limits=PACE, latency_ms=10)
    run = lab.operator.fire(sender.id, targets=40)
    lab.delivered(sender, 5)

    lab.gateway.behave(sender.name, hang=1.0)
    lab.asked([sender], 3)
    lab.gateway.behave(sender.name, hang=0.0)

    assert lab.settled(run).status == "success"
    assert sender.seen.worst(1000) <= 13  # 600 per minute are 100 ms apart, up to 12 % less
