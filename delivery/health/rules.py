"""Judges the health of an account by the share of messages that failed, came back or were complained about. Pure.

Too few messages say nothing. Above a threshold the account slows down, at twice the threshold it pauses. Where it is
healthy again it must be clearly so: a share that stays around the threshold does not switch back and forth.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum

AT_LEAST = 50  # messages; fewer say nothing about an account
DAYS = 7
NEAR = 0.5  # of a threshold
PAUSES_AT = 2.0  # thresholds
PAUSES_FROM = 3  # troubles: one complaint among a few hundred messages slows an account, and does not stop it
RECOVERED = 0.8  # of a threshold


class Level(StrEnum):
    """How an account is judged."""

    UNKNOWN = "unknown"  # too few messages
    GOOD = "good"
    NEAR = "near"  # good, and near a threshold
    SLOW = "slow"  # above it
    PAUSE = "pause"  # far above it


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """The results of an account's messages over some days; `sent` counts messages, not their parts."""

    sent: int = 0
    failed: int = 0
    returned: int = 0
    complained: int = 0
    replies: int = 0
    opt_outs: int = 0

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(
            **{each.name: getattr(self, each.name) + getattr(other, each.name) for each in fields(self)}
        )

    def since(self, base: Mapping[str, int]) -> "Tally":
        """Return the tally without what was counted before; nothing falls below 0."""
        return Tally(
            **{each.name: max(0, getattr(self, each.name) - base.get(each.name, 0)) for each in fields(self)}
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """The largest healthy shares of a channel."""

    lost: float  # failed or returned
    complained: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One share with its threshold: `count` of `of` messages."""

    name: str  # lost or complained
    count: int
    of: int
    threshold: float

    @property
    def share(self) -> float:
        return self.count / self.of if self.of else 0.0

    @property
    def load(self) -> float:
        """Return the share as a multiple of its threshold."""
        return self.share / self.threshold if self.threshold else 0.0

    @property
    def level(self) -> Level:
        if self.load > PAUSES_AT and self.count >= PAUSES_FROM:
            return Level.PAUSE
        if self.load > 1:
            return Level.SLOW
        return Level.NEAR if self.load > NEAR and self.count > 1 else Level.GOOD


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The judgement of an account, and the figure that decides it."""

    level: Level
    worst: Figure
    figures: tuple[Figure, ...]

    @property
    def recovered(self) -> bool:
        """Return whether an account that was slowed down may send at full speed again."""
        return self.worst.load <= RECOVERED


def judged(tally: Tally, thresholds: Thresholds) -> Health:
    """Return the health of an account with this tally."""
    tried = tally.sent + tally.failed
    figures = (
        Figure(name="lost", count=tally.failed + tally.returned, of=tried, threshold=thresholds.lost),
        Figure(name="complained", count=tally.complained, of=tally.sent, threshold=thresholds.complained),
    )
    worst = max(figures, key=lambda figure: figure.load)
    level = worst.level if tried >= AT_LEAST else Level.UNKNOWN
    return Health(level=level, worst=worst, figures=figures)
