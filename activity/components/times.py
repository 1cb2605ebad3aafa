"""Times in words, with their zone. Pure."""

from datetime import datetime, timedelta, tzinfo

SECONDS_ALONE = 90  # below this a duration shows no minutes


def zone_label(moment: datetime) -> str:
    """Return CET where the zone has letters of its own, else its offset as UTC+8 or UTC-3:30."""
    name = moment.tzname() or ""
    if name.isalpha():
        return name
    offset = moment.utcoffset()
    minutes = int(offset.total_seconds() // 60) if offset else 0
    if not minutes:
        return "UTC"
    hours, rest = divmod(abs(minutes), 60)
    sign = "+" if minutes > 0 else "-"
    return f"UTC{sign}{hours}:{rest:02}" if rest else f"UTC{sign}{hours}"


def short(moment: datetime, now: datetime) -> str:
    """Return as much of the time as a reader needs today: the hour, the day, and the year when it is another one."""
    today = now.astimezone(moment.tzinfo)
    return f"today {moment:%H:%M}" if moment.date() == today.date() else clock(moment, now)


def clock(moment: datetime, now: datetime, *, weekday: bool = False) -> str:
    """Return the time for the middle of a sentence: 13:06; on another day 19 Nov, 13:06, or Thu 19 Nov, 13:06."""
    today = now.astimezone(moment.tzinfo)
    if moment.date() == today.date():
        return f"{moment:%H:%M}"
    day = f"{moment:%a} {moment.day}" if weekday else f"{moment.day}"
    year = "" if moment.year == today.year else f" {moment.year}"
    return f"{day} {moment:%b}{year}, {moment:%H:%M}"


def until(moment: datetime, zone: tzinfo, now: datetime) -> str:
    """Return a time that comes, with its zone: today 18:00 (UTC); tomorrow 06:00 (UTC); Thu 19 Nov, 06:00 (UTC)."""
    local, today = moment.astimezone(zone), now.astimezone(zone)
    days = (local.date() - today.date()).days
    if days in (0, 1):
        return f"{('today', 'tomorrow')[days]} {local:%H:%M} ({zone})"
    return dated(moment, zone, now=now)


def comes(moment: datetime, zone: tzinfo, now: datetime) -> str:
    """Return a time that comes, as words: today at 18:00; tomorrow at 06:00; Thu 19 Nov at 06:00."""
    local, today = moment.astimezone(zone), now.astimezone(zone)
    days = (local.date() - today.date()).days
    if days in (0, 1):
        return f"{('today', 'tomorrow')[days]} at {local:%H:%M}"
    return f"{local:%a} {local.day} {local:%b} at {local:%H:%M}"


def dated(moment: datetime, zone: tzinfo, *, now: datetime | None = None) -> str:
    """Return the time with day and zone: Thu 19 Nov, 13:06 (Europe/Berlin); with `now`, the year if it is another."""
    local = moment.astimezone(zone)
    year = f" {local.year}" if now and local.year != now.astimezone(zone).year else ""
    return f"{local:%a} {local.day} {local:%b}{year}, {local:%H:%M} ({zone})"


def full(moment: datetime) -> str:
    return f"{moment:%A} {moment.day} {moment:%B %Y}, {moment:%H:%M:%S} {zone_label(moment)}"


def in_zones(moment: datetime, *zones: tzinfo) -> str:
    """Return the full time in each zone in which it differs, with the zone's name."""
    lines: list[str] = []
    for zone in zones:
        line = f"{full(moment.astimezone(zone))} ({zone})"
        if line not in lines:
            lines.append(line)
    return "\n".join(lines)


def length(seconds: int) -> str:
    """Return a duration as a clock counts it: 8 s, 75 s, 2 min 5 s, 1 h 3 min, as static/js/countdown.js does."""
    if seconds < SECONDS_ALONE:
        return f"{seconds} s"
    minutes, rest = divmod(seconds, 60)
    if minutes >= 60:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{minutes} min {rest} s"


def span(length: timedelta) -> str:
    """Return a duration in its largest fitting unit: 15 minutes, 2 hours."""
    seconds = int(length.total_seconds())
    for unit, size in (("day", 86_400), ("hour", 3600), ("minute", 60)):
        if seconds >= size:
            count = round(seconds / size)
            return f"{count} {unit}" if count == 1 else f"{count} {unit}s"
    return "a minute"
