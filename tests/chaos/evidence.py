"""Reads from the sandbox's log what happened to one account's messages."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path

from sandbox.log import Line
from sandbox.witness import deliveries, read, worst_window
from tests.chaos.operator import TargetView

MINUTE = 60_000


class Evidence:
    """The messages that the gateway received from one account."""

    def __init__(self, log: Path, account: str) -> None:
        self._log = log
        self._account = account

    def received(self) -> list[Line]:
        return [
            line for line in read(self._log) if line["kind"] == "message" and line["account"] == self._account
        ]

    def delivered(self) -> list[Line]:
        return deliveries(self._log, self._account)

    def arrivals(self) -> Counter[str]:
        """Return how often each message arrived, by its key: one part for one target."""
        return Counter(line["key"] for line in self.delivered())

    def worst(self, ms: int) -> int:
        """The most messages received in any window of `ms`."""
        return worst_window((line["at"] for line in self.received()), ms)

    def most_in_flight(self, latency_ms: int) -> int:
        """The most requests that were unanswered at once, by a gateway that answers after `latency_ms`."""
        # A timer of the gateway may ring a little early.
        return worst_window((line["at"] for line in self.received()), latency_ms - 10)

    def most_groups_open(self) -> int:
        """The most groups of which the first part had arrived and the last had not."""
        spans: dict[str, tuple[int, int]] = {}
        for line in self.received():
            first, _ = spans.get(line["to"], (line["at"], 0))
            spans[line["to"]] = first, line["at"]
        begun = [first for first, _ in spans.values()]
        return max(sum(first <= at <= last for first, last in spans.values()) for at in begun)


def part_keys(targets: Iterable[TargetView], *, parts: int = 1) -> list[str]:
    """The key of every message of a run."""
    return [f"{target.key}-{part}" for target in targets for part in range(parts)]


def parts_out_of_order(lines: Sequence[Line], targets: Iterable[TargetView], *, parts: int) -> list[str]:
    """The targets whose parts did not arrive one after the other, each once."""
    by_address: dict[str, list[str]] = {}
    for line in lines:
        by_address.setdefault(line["to"], []).append(line["key"])
    return [
        target.address
        for target in targets
        if by_address.get(target.address) != part_keys([target], parts=parts)
    ]


def pumps_that_overlapped(lines: Sequence[Line], targets: Iterable[TargetView]) -> list[tuple[int, int]]:
    """Pumps of which the older one sent after the newer one had, by their fencing numbers.

    Only for targets of one part that went out at the first attempt: a target has the number of its last pump.
    """
    fences = {f"{target.key}-0": target.fence or 0 for target in targets}
    served = [fences[line["key"]] for line in lines]
    return [(before, after) for before, after in pairwise(served) if after < before]
