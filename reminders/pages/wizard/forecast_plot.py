"""The drawing of a forecast: the number of delivered messages over time, and the delivery hours."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from activity.components.plots import Climb, climb
from delivery.planning.words import Forecast
from delivery.window import closes_at, opens_at, window_start_at

WIDTH, HEIGHT = 720, 160
MOST_WINDOWS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastPlot:
    """The shapes and labels that reminders/wizard/_forecast_plot.html draws."""

    climb: Climb
    width: int
    height: int
    starts: str
    middle: str
    ends: str
    most: int
    people: str = ""  # the line of the new people alone; empty where the forecast has none


def draw(forecast: Forecast) -> ForecastPlot | None:
    """Return the drawing, or None where there is nothing to send."""
    if not forecast.targets or not forecast.timeline.curve:
        return None
    first = opens_at(forecast.window, forecast.fires_at)
    start = min(window_start_at(forecast.window.zone, forecast.window.start_hour, first), forecast.fires_at)
    end = _end(forecast)
    points = [(point.at.timestamp(), float(point.done)) for point in forecast.timeline.curve]
    points.append((end.timestamp(), points[-1][1]))  # after the last message the line stays level
    spans = [(opens.timestamp(), closes.timestamp()) for opens, closes in _windows(forecast, start, end)]
    frame = {"start": start.timestamp(), "end": end.timestamp(), "width": WIDTH, "height": HEIGHT}
    drawn = climb(points, spans, **frame)
    new = [(point.at.timestamp(), float(point.done)) for point in forecast.timeline.people]
    several = end - start > timedelta(days=1)
    zone = ZoneInfo(forecast.window.zone)
    return ForecastPlot(
        climb=drawn,
        people=climb(new, [], **frame, most=points[-1][1]).line if new else "",
        width=WIDTH,
        height=HEIGHT,
        starts=_label(start, zone, several=several),
        middle=_label(start + (end - start) / 2, zone, several=several),
        ends=_label(end, zone, several=several),
        most=forecast.targets,
    )


def _end(forecast: Forecast) -> datetime:
    """Return the end of the last window that the run needs; around the clock, the end of the last day."""
    end = closes_at(forecast.window, forecast.finishes_at or forecast.timeline.curve[-1].at)
    around_the_clock = forecast.window.start_hour == 0 and forecast.window.end_hour == 24
    return end if around_the_clock else max(end, forecast.closes_at)


def _windows(forecast: Forecast, start: datetime, end: datetime) -> list[tuple[datetime, datetime]]:
    found: list[tuple[datetime, datetime]] = []
    at = start
    while at < end and len(found) < MOST_WINDOWS:
        opens = opens_at(forecast.window, at)
        at = closes_at(forecast.window, opens)
        found.append((opens, at))
    return [span for span in found if span[0] < end]


def _label(at: datetime, zone: ZoneInfo, *, several: bool) -> str:
    local = at.astimezone(zone)
    return f"{local:%a} {local.day} {local:%b}, {local:%H:%M}" if several else f"{local:%H:%M}"
