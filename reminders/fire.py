"""Fires a reminder: a frozen copy of it becomes a run."""

from datetime import datetime

from accounts.models import User
from accounts.roles import require_touch
from delivery.fanout import Firing, make_run
from delivery.models import Run
from delivery.parts import FrozenPart
from reminders.models import Part, Reminder


def fire(reminder: Reminder, *, due_at: datetime | None = None, by: User | None = None) -> Run:
    """Make the run of one firing. `due_at` is the due moment, which fires once; none is a firing by hand."""
    if by is not None:
        require_touch(reminder, by)
    return make_run(freeze(reminder, due_at=due_at))


def freeze(reminder: Reminder, *, due_at: datetime | None = None) -> Firing:
    parts = reminder.parts.filter(role=Part.Role.FIRST).select_related("media").order_by("position")
    accounts = reminder.reminder_accounts.order_by("position", "id")
    return Firing(
        reminder_id=reminder.pk,
        owner_id=reminder.owner_id,
        name=str(reminder),
        action=reminder.action,
        subject=reminder.subject,
        parts=[_frozen(part) for part in parts],
        zone=reminder.zone,
        window_start_hour=reminder.window_start_hour,
        window_end_hour=reminder.window_end_hour,
        send_days=reminder.send_days,
        resumes_by_itself=reminder.on_close == Reminder.OnClose.RESUME,
        priority=reminder.priority,
        account_ids=list(accounts.values_list("account_id", flat=True)),
        due_at=due_at,
    )


def _frozen(part: Part) -> FrozenPart:
    if part.media is None:
        return FrozenPart(kind="text", text=part.text)
    return FrozenPart(
        kind="media",
        text=part.text,
        sha256=part.media.sha256,
        file=part.media.file.name or "",
        filename=part.media.filename,
        content_type=part.media.content_type,
    )
