"""The steps of the wizard. Each has its own address, so that a user can link to it and return to it."""

from dataclasses import dataclass
from typing import Literal

from django.urls import reverse
from django.utils import timezone

from delivery.audience import Audience
from delivery.planning.words import Forecast
from reminders.audience import some_of
from reminders.forecast import forecast
from reminders.models import Part, Reminder

Key = Literal["message", "recipients", "when", "review"]
TITLES: dict[Key, str] = {
    "message": "Message",
    "recipients": "Recipients",
    "when": "When",
    "review": "Review",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step, as components/_steps.html draws it."""

    key: Key
    title: str
    url: str
    done: bool
    current: bool


def steps(reminder: Reminder, current: Key) -> list[Step]:
    done = {
        "message": reminder.parts.filter(role=Part.Role.FIRST).exists(),
        "recipients": reminder.reminder_accounts.exists()
        and (reminder.recipients.exists() or reminder.tags.exists()),
        "when": has_time(reminder),
    }
    shown = [key for key in TITLES if key != "review" or reminder.status != Reminder.Status.SCHEDULED]
    return [
        Step(
            key=key,
            title=TITLES[key],
            url=reverse(f"reminders:{key}", args=[reminder.pk]),
            done=done.get(key, False),
            current=key == current,
        )
        for key in shown
    ]


def has_time(reminder: Reminder) -> bool:
    match Reminder.Schedule(reminder.schedule):
        case Reminder.Schedule.ONCE:
            return reminder.fire_at is not None
        case Reminder.Schedule.CRON:
            return bool(reminder.cron)
        case Reminder.Schedule.BY_HAND:
            return True


def frame(reminder: Reminder, current: Key, reached: Audience | None = None) -> dict[str, object]:
    """Return what every step shows around its form."""
    draft = reminder.status == Reminder.Status.DRAFT
    return {
        "reminder": reminder,
        "steps": steps(reminder, current),
        "draft": draft,
        # Shown next to the button. The last step has its own place for the forecast.
        "forecast": None if current == "review" else _forecast(reminder, draft=draft, reached=reached),
    }


def _forecast(reminder: Reminder, *, draft: bool, reached: Audience | None) -> Forecast | None:
    """Return the forecast; None for a draft that nobody would get yet."""
    if draft and not (reminder.reminder_accounts.exists() and some_of(reminder, 1)):
        return None
    return forecast(reminder, now=timezone.now(), reached=reached)
