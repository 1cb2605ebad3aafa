"""The reasons why a due moment was not run, in sentences for its operator."""

from collections.abc import Sequence
from datetime import timedelta

from activity.components.times import dated
from delivery.models import Run
from delivery.window import zone_of
from reminders.moments import MOST_COUNTED, Backlog


def missed(backlog: Backlog, zone: str, limit: timedelta) -> str:
    """Return what was missed while nothing could fire it, and what happened to the newest moment."""
    if backlog.fires is not None:
        then = f"The newest one, {dated(backlog.fires, zone_of(zone))}, was started late."
    else:
        then = f"It is more than {_minutes(limit)} late now. Press “Send now” if it still matters."
    return f"Missed {_what(backlog, zone)}: Paceline was not running. {then}"


def overlapped(going: Sequence[Run]) -> str:
    """Return why a moment was skipped: `going` are the open runs of its reminder."""
    last = going[-1]
    if len(going) > 1:
        return f"Skipped: run {last.pk} already waits for run {going[0].pk} to end."
    return f"Skipped: run {last.pk} of this reminder was still {last.shown_status}. {_remedy(last)}"


def _remedy(last: Run) -> str:
    if last.waits_for_a_person:
        return "Resume or cancel that run."
    if last.goes_on_by_itself and last.opens_at is None:
        return "That run continues when its account can send again: check the account, or cancel the run."
    return "The next one comes as planned."


def _what(backlog: Backlog, zone: str) -> str:
    first, last = backlog.first_missed, backlog.last_missed
    if first is None or last is None:
        raise ValueError("Nothing was missed.")
    if backlog.missed > MOST_COUNTED:
        return f"more than {MOST_COUNTED:,} times since {dated(first, zone_of(zone))}"
    if backlog.missed > 1:
        return f"{backlog.missed} times from {dated(first, zone_of(zone))} to {dated(last, zone_of(zone))}"
    return dated(last, zone_of(zone))


def _minutes(limit: timedelta) -> str:
    return f"{limit.total_seconds() / 60:g} minutes"
