"""Computes when an account's messages leave in a stretch where only its limits delay them. Pure.

The engine draws each gap at random; here their mean is used, so that the time of the millionth message takes one
division per limit and not a million steps.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from delivery.pacing import Limits, spread_ms

JITTER_LOSS = 1.01
"""The rate that jitter costs where the spread of a cap sets the pace, measured at `pacing.SPREAD_JITTER`."""

HOUR = 60  # minutes

Delayed = Callable[[float], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """A limit of at most `units` in any `seconds`."""

    units: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Spacing:
    """Targets `gap` seconds apart, and after every so many of them the longer wait that a layer asks for.

    Layers go from the shortest to the longest. Each begins again with the one above it, as a sliding cap does
    once the account has waited for it.
    """

    gap: float
    layers: tuple[Layer, ...] = ()

    def at(self, count: int) -> float:
        """Return the seconds from the first target until the one that has `count` before it."""
        return self._at(count, len(self.layers))

    def within(self, seconds: float) -> int | None:
        """Return how many targets begin in less than `seconds`; None where nothing limits them."""
        return self._within(seconds, len(self.layers))

    @property
    def memory(self) -> float:
        """Return the seconds of silence after which the spacing begins from the start."""
        return max((layer.seconds for layer in self.layers), default=self.gap)

    def _at(self, count: int, depth: int) -> float:
        if depth == 0:
            return count * self.gap
        rounds, rest = divmod(count, self.layers[depth - 1].units)
        return rounds * self._round(depth) + self._at(rest, depth - 1)

    def _within(self, seconds: float, depth: int) -> int | None:
        if seconds <= 0:
            return 0
        if depth == 0:
            return None if self.gap == 0 else _begun(seconds, self.gap)
        layer, length = self.layers[depth - 1], self._round(depth)
        if length == 0:
            return None
        rounds = int(seconds // length)
        inner = self._within(seconds - rounds * length, depth - 1)
        return rounds * layer.units + (layer.units if inner is None else min(layer.units, inner))

    def _round(self, depth: int) -> float:
        """Return how long a layer takes from its first target to the first one of the next round."""
        layer = self.layers[depth - 1]
        return max(layer.seconds, self._at(layer.units, depth - 1))


def spacing_of(
    limits: Limits,
    *,
    parts: int,
    minute: float = 60.0,
    slowest: float = 0.0,
    delayed: Delayed = lambda gap: gap,
) -> Spacing:
    """Return the spacing of targets of `parts` messages under `limits`.

    A minute of the limits lasts `minute` seconds. `slowest` are the seconds that a message is known to take,
    whatever the limits allow. `delayed` returns the gap after errors and a slow-down.
    """
    scale = minute / 60
    gap = max(delayed(mean_gap(limits, parts)) * scale, slowest * parts)
    layers = [
        Layer(units=cap // parts, seconds=seconds)
        for cap, seconds in ((limits.per_minute, minute), (limits.per_hour, HOUR * minute))
        if cap
    ]
    layers += _batches(limits, parts, gap)
    # A cap below the parts of one target never lets a target through: `limits.lookup.why_never` says so.
    fitting = (layer for layer in layers if layer.units)
    return Spacing(gap=gap, layers=tuple(sorted(fitting, key=lambda layer: layer.seconds)))


def mean_gap(limits: Limits, parts: int) -> float:
    """Return the mean of what `pacing.gaps_ms` draws, in seconds: the larger of the random gap and the spread."""
    spread, low, high = spread_ms(limits, parts) / 1000 * JITTER_LOSS, limits.gap_min, limits.gap_max
    if spread <= low or low == high:
        return max(spread, (low + high) / 2)
    if spread >= high:
        return spread
    below = (spread - low) * spread
    above = (high * high - spread * spread) / 2
    return (below + above) / (high - low)


def _batches(limits: Limits, parts: int, gap: float) -> Iterable[Layer]:
    """Return a batch as a layer: the pause counts from the last target's start, and replaces its gap."""
    if limits.batch_size and limits.batch_pause:
        units = max(1, limits.batch_size // parts)
        yield Layer(units=units, seconds=(units - 1) * gap + max(gap, limits.batch_pause))


def _begun(seconds: float, gap: float) -> int:
    """Return how many of 0, gap, 2 * gap ... are below `seconds`."""
    whole = int(seconds // gap)
    return whole + (whole * gap < seconds)
