"""The engine's statements and the pages on a database, and on one ten times as large: how much slower each gets."""

import argparse
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.test import override_settings
from django.utils import timezone

from benchmarks import pages, plans
from benchmarks.pages import SERVED
from benchmarks.tables import crowd, scratch

TARGETS = 1_000_000
FACTOR = 10
MOST_GROWTH = 1.5
TIMES = 21  # of each statement
NOISE_MS = 0.2  # below that, a busy machine decides
# A day's count reads the messages of that day: its rows grow with what an account sends, not with the ledger.
OWN_SIZE = frozenset({"a day's count"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One size: milliseconds of the statements of engine and tick, and of the pages (p95), by name."""

    statements: Mapping[str, float]
    pages: Mapping[str, float]


def main(argv: Sequence[str]) -> dict[str, object]:
    parser = argparse.ArgumentParser(prog="python -m benchmarks growth", description=__doc__)
    parser.add_argument("targets", type=int, nargs="?", default=TARGETS, help="Of the smaller database.")
    parser.add_argument("--times", type=int, default=20, help="How often each page is asked for.")
    parser.add_argument("--only", default="", help="Ask for pages whose addresses contain this.")
    options = parser.parse_args(argv)
    small = _measure(options.targets, options.times, options.only)
    large = _measure(FACTOR * options.targets, options.times, options.only)
    growths = {name: _growth(ms, large.statements[name]) for name, ms in small.statements.items()}
    worst = max((growth, name) for name, growth in growths.items() if name not in OWN_SIZE)
    slowest = max((ms, name) for name, ms in large.pages.items())
    _print(small, large, options.targets)
    return {
        "targets": FACTOR * options.targets,
        "p95_ms": round(slowest[0], 1),
        "slowest": slowest[1],
        "worst_growth": round(worst[0], 2),
        "grows_most": worst[1],
        "ok": worst[0] <= MOST_GROWTH and slowest[0] < pages.MOST_MS,
    }


def _measure(targets: int, times: int, only: str) -> Measured:
    with scratch.database("growth"):
        size = crowd.Size(targets=targets, attempts=targets)
        pages.fill(size)
        now = timezone.now()
        answers = [plans.ask(each, times=TIMES) for each in (*plans.engine(now), *plans.tick(now))]
        with override_settings(**SERVED):
            logging.disable(logging.WARNING)  # a line per request would be measured too
            asked = list(pages.everything(size, times, only=only))
            logging.disable(logging.NOTSET)
    return Measured(
        statements={answer.question.name: answer.ms for answer in answers},
        pages={f"{each.name} {each.address}": each.p95_ms for each in asked},
    )


def _growth(small: float, large: float) -> float:
    return max(large, NOISE_MS) / max(small, NOISE_MS)


def _print(small: Measured, large: Measured, targets: int) -> None:
    print(f"| statement | {targets:,} ms | {FACTOR * targets:,} ms | growth |\n|---|---:|---:|---:|")
    for name, ms in small.statements.items():
        after = large.statements[name]
        print(f"| {name} | {ms:.2f} | {after:.2f} | {_growth(ms, after):.2f} |")
    print("\n| page | p95 ms before | p95 ms after |\n|---|---:|---:|")
    for name, ms in sorted(large.pages.items(), key=lambda each: -each[1]):
        print(f"| {name} | {small.pages.get(name, 0.0):.1f} | {ms:.1f} |")
