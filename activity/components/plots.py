"""The geometry of bars and plots that the server draws as SVG. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

BAR_WIDTH = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A part of a bar, in units of a bar that is BAR_WIDTH wide."""

    name: str
    count: int
    x: float
    width: float


def segments(counts: Mapping[str, int], total: int) -> list[Segment]:
    """Return the counts side by side, in their order; an empty count is included, with no width."""
    drawn = []
    x = 0.0
    for name, count in counts.items():
        width = BAR_WIDTH * count / total if total else 0.0
        drawn.append(Segment(name=name, count=count, x=round(x, 2), width=round(width, 2)))
        x += width
    return drawn


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One bar of a plot, with the slot around it."""

    label: str
    value: int
    slot_x: float
    slot_width: float
    x: float
    width: float
    y: float
    height: float


def columns(values: Sequence[tuple[str, int]], *, width: float, height: float) -> list[Column]:
    """Return bars over a base line, the highest as high as the plot; a small value stays visible."""
    slot = width / len(values) if values else 0.0
    peak = max((value for _, value in values), default=0)
    drawn = []
    for index, (label, value) in enumerate(values):
        tall = max(height * value / peak, 2.0) if value else 0.0
        drawn.append(
            Column(
                label=label,
                value=value,
                slot_x=round(index * slot, 2),
                slot_width=round(slot, 2),
                x=round(index * slot + slot * 0.18, 2),
                width=round(slot * 0.64, 2),
                y=round(height - tall, 2),
                height=round(tall, 2),
            )
        )
    return drawn


@dataclass(frozen=True, slots=True, kw_only=True)
class Spark:
    """A line without axes: its points, the area under it, and its end."""

    line: str
    area: str
    end_x: float
    end_y: float


def spark(values: Sequence[float], *, width: float, height: float) -> Spark | None:
    """Return the values as a line from left to right, the highest at the top, or None when there is no line to draw."""
    if len(values) < 2:
        return None
    low, high = min(values), max(values)
    span = (high - low) or 1.0
    step = width / (len(values) - 1)
    points = [
        (round(i * step, 2), round(height - (value - low) / span * height, 2))
        for i, value in enumerate(values)
    ]
    line = " ".join(f"{x},{y}" for x, y in points)
    area = f"0,{height} {line} {width},{height}"
    return Spark(line=line, area=area, end_x=points[-1][0], end_y=points[-1][1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """A shaded stretch of time."""

    x: float
    width: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Climb:
    """A line that climbs from zero to the total over time, and the stretches in which messages may be sent."""

    line: str
    area: str
    bands: Sequence[Band]


def climb(
    points: Sequence[tuple[float, float]],
    spans: Sequence[tuple[float, float]],
    *,
    start: float,
    end: float,
    width: float,
    height: float,
    most: float = 0.0,
) -> Climb:
    """Return the drawing from `start` to `end`: `points` are times with the number done, `spans` are shaded.

    `most` is the number at the top; by default the highest of `points`.
    """
    length = (end - start) or 1.0
    most = most or max((done for _, done in points), default=0) or 1.0

    def x(at: float) -> float:
        return round(min(max((at - start) / length, 0.0), 1.0) * width, 2)

    drawn = [(x(at), round(height - done / most * height, 2)) for at, done in points]
    line = " ".join(f"{at},{level}" for at, level in drawn)
    area = f"{drawn[0][0]},{height} {line} {drawn[-1][0]},{height}" if drawn else ""
    bands = [Band(x=x(first), width=round(x(last) - x(first), 2)) for first, last in spans]
    return Climb(line=line, area=area, bands=[band for band in bands if band.width > 0])
