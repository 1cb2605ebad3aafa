"""Turns reminders, audiences and forecasts into the shapes that answers show."""

from collections.abc import Sequence
from typing import Any

from django.utils import timezone

from accounts.models import Approval
from api import leaving
from api.schemas.base import Leaving
from api.schemas.reminders import (
    DAYS,
    AudienceShown,
    Fired,
    ForecastShown,
    PartShown,
    PauseShown,
    ReminderDetail,
    ReminderShown,
    StepProblem,
    WindowShown,
)
from api.schemas.runs import RunShown
from delivery.audience import Audience
from delivery.planning.words import Forecast
from reminders import audience as choosing
from reminders import headcount
from reminders.approvals import asking
from reminders.message import typed_of
from reminders.models import Part, Reminder
from reminders.readiness import problems

COLUMNS = (
    *(
        "name",
        "status",
        "channel",
        "action",
        "subject",
        "schedule",
        "fire_at",
        "cron",
        "zone",
        "next_fire_at",
    ),
    *("on_close", "on_overlap", "on_paused", "priority", "drip", "drip_gap_min", "drip_gap_max"),
    *("created_at", "updated_at", "archived_at"),
)
account_ids = headcount.account_ids


def reminders(found: Sequence[Reminder]) -> list[ReminderShown]:
    return [ReminderShown(**_facts(reminder)) for reminder in found]


def detail(reminder: Reminder) -> ReminderDetail:
    """Return one reminder with its message, and what keeps it from being scheduled."""
    parts = list(reminder.parts.select_related("media").order_by("position"))
    missing = [StepProblem(field=each.step.value, detail=each.sentence) for each in problems(reminder)]
    return ReminderDetail(
        **_facts(reminder),
        parts=_parts(parts, Part.Role.FIRST),
        second_parts=_parts(parts, Part.Role.SECOND),
        accounts=account_ids(reminder),
        tags=[tag.name for tag in reminder.tags.order_by("name")],
        recipients=choosing.named(reminder),
        problems=missing,
        approval=_approval(reminder),
    )


def audience(reminder: Reminder, reached: Audience) -> AudienceShown:
    return AudienceShown(
        accounts=account_ids(reminder),
        reached=reached.reached,
        excluded=dict(reached.refused),
        lacking=dict(reached.lacking),
        short=reached.short,
    )


def forecast(found: Forecast) -> ForecastShown:
    """Return a forecast; `leaves_at` is when its first message leaves."""
    line = found.timeline
    waits = line.starts_at is not None and line.starts_at > found.fires_at
    return ForecastShown(
        leaves_at=line.starts_at if found.targets else None,
        waiting_for="turn" if waits else "",
        sentence=found.sentence,
        fits=found.fits,
        label=found.label,
        suggestion=found.suggestion,
        targets=found.targets,
        parts=found.parts,
        minutes=found.minutes,
        fires_at=found.fires_at,
        finishes_at=found.finishes_at,
        pauses=[
            PauseShown(at=pause.at, until=pause.until, cause=pause.cause.value, done=pause.done)
            for pause in line.pauses
        ],
    )


def fired(reminder: Reminder, reached: Audience, foreseen: Forecast, *, run: RunShown | None) -> Fired:
    """Return what a firing did; without a run, what it would do."""
    told = forecast(foreseen)
    goes_on: Leaving = run or told
    return Fired(
        dry_run=run is None,
        run=run,
        leaves_at=goes_on.leaves_at,
        waiting_for=goes_on.waiting_for,
        sentence=goes_on.sentence,
        audience=audience(reminder, reached),
        forecast=told,
    )


def waits(told: Fired, approval: Approval) -> Fired:
    """Return the answer for a firing that a second person has to approve first."""
    sentence = f"Nothing is sent yet. {approval.why} It is sent as soon as somebody approves it."
    changed = {"dry_run": False, "approval": approval.pk, "leaves_at": None, "waiting_for": "approval"}
    return told.model_copy(update=changed | {"sentence": sentence})


def _approval(reminder: Reminder) -> int | None:
    waiting = asking.waiting_for(reminder, Approval.Kind.REMINDER)
    return waiting.pk if waiting is not None else None


def _facts(reminder: Reminder) -> dict[str, Any]:
    return {
        "id": reminder.pk,
        "owner": reminder.owner_id,
        "window": WindowShown(
            start_hour=reminder.window_start_hour,
            end_hour=reminder.window_end_hour,
            days=[day for bit, day in enumerate(DAYS) if reminder.send_days & 1 << bit],
        ),
        **{name: getattr(reminder, name) for name in COLUMNS},
        **leaving.of_reminder(reminder, now=timezone.now()).model_dump(),
    }


def _parts(parts: Sequence[Part], role: Part.Role) -> list[PartShown]:
    return [
        PartShown(
            kind="media" if part.media_id else "text",
            text=typed_of(part).wordings[0],  # with a backslash where braces are plain: it may be sent back
            other_wordings=part.other_wordings or [],
            media=part.media_id,
            filename=part.media.filename if part.media else "",
        )
        for part in parts
        if part.role == role
    ]
