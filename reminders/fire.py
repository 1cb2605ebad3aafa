"""Fires a reminder: a frozen copy of it becomes a run."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models import Prefetch, prefetch_related_objects

from accounts.models import User
from accounts.roles import require_touch
from delivery.fanout import Firing, make_run
from delivery.lifecycle import WrongStateError
from delivery.models import Run
from delivery.parts import FrozenPart
from reminders.models import Part, Reminder, ReminderAccount

SENDERS = ReminderAccount.objects.select_related("account").defer("account__credentials")


@transaction.atomic
def fire(reminder: Reminder, *, by: User | None = None, key: UUID | None = None) -> Run:
    """Make a run by hand, unless the last one is still going: a second click must not send it all again.

    A page gives each of its buttons a `key`: pressed twice, the run of the first press is the answer.
    """
    if by is not None:
        require_touch(reminder, by)
    reminder = Reminder.objects.select_for_update(no_key=True).get(pk=reminder.pk)
    if known := Run.objects.filter(reminder=reminder, key=key).first() if key else None:
        return known
    last = Run.objects.open().filter(reminder=reminder, kind=Run.Kind.REMINDER).first()
    if last is not None:
        raise WrongStateError(
            f"Run {last.pk} of this reminder is still {last.status}. Wait for its end, or cancel it first."
        )
    load_for_freezing([reminder])
    firing = freeze(reminder)
    return make_run(replace(firing, key=key) if key else firing)


def refuse_drafts(reminder: Reminder) -> None:
    """What nobody has called ready is not fired by a click."""
    if reminder.status == Reminder.Status.DRAFT or reminder.archived_at is not None:
        raise WrongStateError(f"{reminder} is a draft or archived. Schedule it first, then fire it.")


def load_for_freezing(reminders: Iterable[Reminder]) -> None:
    """Read what `freeze` needs of many reminders at once."""
    prefetch_related_objects(list(reminders), "parts__media", Prefetch("reminder_accounts", SENDERS.all()))


def freeze(
    reminder: Reminder, *, due_at: datetime | None = None, behind: int | None = None, why_not: str = ""
) -> Firing:
    """The copy. Accounts that are archived by now are left out."""
    parts = [part for part in reminder.parts.all() if part.role == Part.Role.FIRST]
    senders = [sender for sender in reminder.reminder_accounts.all() if sender.account.archived_at is None]
    return Firing(
        reminder_id=reminder.pk,
        owner_id=reminder.owner_id,
        name=str(reminder),
        action=reminder.action,
        subject=reminder.subject,
        parts=[frozen(part) for part in parts],
        zone=reminder.zone,
        window_start_hour=reminder.window_start_hour,
        window_end_hour=reminder.window_end_hour,
        send_days=reminder.send_days,
        resumes_by_itself=reminder.on_close == Reminder.OnClose.RESUME,
        priority=reminder.priority,
        drip=(reminder.drip_gap_min, reminder.drip_gap_max) if reminder.drip else None,
        account_ids=[sender.account_id for sender in senders],
        due_at=due_at,
        behind=behind,
        why_not=why_not,
    )


def frozen(part: Part) -> FrozenPart:
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
