"""A reminder's schedule in words: its meaning, its next firings, and notes about them."""

from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from activity.components.times import span, zone_label
from delivery.window import BadWindowError, Missed, Waits, Window, on_fire
from reminders.models import Reminder
from reminders.moments import BadCronError, Timetable, crowded, in_words, upcoming
from reminders.readiness import timetable_of, window_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """A schedule: in words, its next five firings, and notes on them."""

    words: str
    firings: list[datetime]
    notes: list[str]


def timing_of(reminder: Reminder, *, now: datetime) -> Timing:
    """Return the timing of the reminder as it is, saved or not."""
    try:
        window, timetable, words = window_of(reminder), timetable_of(reminder), words_of(reminder)
        firings = upcoming(timetable, after=now) if timetable else []
    except (BadCronError, BadWindowError) as error:
        return Timing(words="", firings=[], notes=[str(error)])
    if timetable is None or not firings:
        return Timing(words=words, firings=firings, notes=[])
    changes = clock_changes(firings, reminder.zone, now)
    notes = [*too_often(timetable, now), *_about_window(firings[0], window), *changes]
    return Timing(words=words, firings=firings, notes=notes)


def too_often(timetable: Timetable, now: datetime) -> list[str]:
    """Return a warning for a schedule that comes more often than once an hour."""
    found = crowded(timetable, after=now)
    if found is None:
        return []
    gap, times = found
    every = f"every {span(gap)}".replace("every 1 ", "every ")
    words = f"as often as {every}, and {times:,} times in the next 24 hours"
    return [f"This is more often than once an hour: {words}. Everyone gets it each time."]


def words_of(reminder: Reminder) -> str:
    match reminder.schedule:
        case Reminder.Schedule.CRON:
            return in_words(reminder.cron)
        case Reminder.Schedule.ONCE if reminder.fire_at is not None:
            local = reminder.fire_at.astimezone(ZoneInfo(reminder.zone))
            return f"Once, on {local:%A} {local.day} {local:%B %Y} at {local:%H:%M} ({reminder.zone})"
        case Reminder.Schedule.ONCE:
            return "Once"
        case _:
            return "Manual: sent only when you press “Send now”"


def clock_changes(firings: list[datetime], zone: str, now: datetime) -> list[str]:
    """Return a sentence for the first firing after a clock change."""
    today = now.astimezone(ZoneInfo(zone))
    for firing in firings:
        local = firing.astimezone(ZoneInfo(zone))
        if local.utcoffset() != today.utcoffset():
            clocks = f"from {zone_label(today)} to {zone_label(local)}"
            day = f"{local.day} {local:%B}"
            return [f"The clocks in {zone} change before {day}, {clocks}. The local time stays the same."]
    return []


def _about_window(firing: datetime, window: Window) -> list[str]:
    match on_fire(window, firing):
        case Missed():
            return [
                f"This time is after the delivery hours, which end at {window.end_hour:02}:00. Nothing would be sent."
            ]
        case Waits(opens_at=opens):
            local = opens.astimezone(ZoneInfo(window.zone))
            return [f"It then waits for the delivery hours, until {local:%A %H:%M}."]
        case _:
            return []
