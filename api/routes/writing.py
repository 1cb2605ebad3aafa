"""Turns the message and the times of a request into what the actions of reminders take."""

from collections.abc import Sequence
from typing import Any

from django.core.exceptions import ValidationError
from django.utils import timezone

from accounts.models import User
from accounts.zones import validate_zone
from api.problems import invalid
from api.schemas.reminders import DAYS, MessageGiven, PartGiven, TimesGiven
from reminders import message
from reminders.message import TypedPart
from reminders.models import Media, Part, Reminder
from reminders.moments import BadCronError, check_cron, too_far

SAME_NAME = (
    *("schedule", "cron", "zone", "on_close", "on_overlap", "on_paused", "priority"),
    *("drip", "drip_gap_min", "drip_gap_max"),
)
RENAMED = {"at": "fire_at", "start_hour": "window_start_hour", "end_hour": "window_end_hour"}


def write_message(reminder: Reminder, body: MessageGiven, *, by: User) -> None:
    """Save the parts that are given, and keep the others."""
    if body.name is not None:
        reminder.name = body.name
    if body.subject is not None:
        reminder.subject = one_line(body.subject)
    typed = {
        Part.Role.FIRST.value: _parts(reminder, Part.Role.FIRST, body.parts),
        Part.Role.SECOND.value: _parts(reminder, Part.Role.SECOND, body.second_parts),
    }
    message.write(reminder, typed, by=by)


def typed_parts(owner_id: int, parts: Sequence[PartGiven], field: str = "parts") -> list[TypedPart]:
    """Return the parts with their files; raises a problem for an empty part, or a file that is not the owner's."""
    files = Media.objects.filter(owner=owner_id).in_bulk([part.media for part in parts if part.media])
    for index, part in enumerate(parts):
        if part.media is None and not part.text.strip():
            raise invalid(f"{field}.{index}", "A part is a text or a file. Write a text, or name a file.")
        if part.media is not None and part.media not in files:
            raise invalid(
                f"{field}.{index}.media", f"There is no file {part.media} of this owner. Upload it first."
            )
    return [
        TypedPart(
            text=part.text, media=files[part.media] if part.media else None, others=tuple(part.other_wordings)
        )
        for part in parts
    ]


def set_times(reminder: Reminder, body: TimesGiven) -> None:
    """Set what is given on the reminder, unsaved; raises a problem for times that cannot be."""
    given: dict[str, Any] = body.model_dump(exclude_unset=True)
    for name in (*SAME_NAME, *RENAMED):
        if given.get(name) is not None:
            setattr(reminder, RENAMED.get(name, name), given[name])
    if body.days is not None:
        reminder.send_days = bits_of(body.days)
    require_zone(reminder.zone)
    require_hours(reminder.window_start_hour, reminder.window_end_hour)
    if reminder.drip_gap_min > reminder.drip_gap_max:
        raise invalid("drip_gap_max", "The longest gap must not be shorter than the shortest.")
    if body.at is not None and (why := too_far(body.at, timezone.now())):
        raise invalid("at", why)
    if reminder.schedule == Reminder.Schedule.CRON:
        _require_cron(reminder.cron)


def one_line(text: str) -> str:
    """Return a subject without line breaks, as the field of the page has it."""
    return " ".join(text.split())


def bits_of(days: Sequence[str]) -> int:
    return sum(1 << bit for bit, day in enumerate(DAYS) if day in days)


def require_hours(start: int, end: int) -> None:
    if start >= end:
        raise invalid("end_hour", "Delivery hours must end after they start, on the same day.")


def _parts(reminder: Reminder, role: Part.Role, given: Sequence[PartGiven] | None) -> list[TypedPart]:
    if given is not None:
        field = "parts" if role == Part.Role.FIRST else "second_parts"
        return typed_parts(reminder.owner_id, given, field)
    kept = reminder.parts.filter(role=role).select_related("media").order_by("position")
    return [message.typed_of(part) for part in kept]


def require_zone(zone: str) -> None:
    try:
        validate_zone(zone)
    except ValidationError as error:
        raise invalid("zone", " ".join(error.messages)) from error


def _require_cron(cron: str) -> None:
    try:
        check_cron(cron)
    except BadCronError as error:
        raise invalid("cron", str(error)) from error
