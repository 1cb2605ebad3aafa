"""Creating, copying, archiving and discarding reminders. Scheduling is in `reminders/scheduling.py`."""

import re
from collections.abc import Mapping

from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.utils import timezone

from accounts.approvals.requests import close_of
from accounts.models import Account, Approval, Role, User
from accounts.models.account import Action, Channel
from accounts.roles import owners_for, require_touch
from audit.record import record
from delivery.models import Run
from delivery.wordings import VARIABLE, cut
from reminders.approvals.asking import after_edit
from reminders.models import FollowUpStep, Part, Reminder, ReminderAccount

NAME_LENGTH = 40

# The actions of each channel; the first is the default of a reminder.
ACTIONS: dict[str, tuple[Action, ...]] = {
    Channel.WHATSAPP: (Action.MESSAGE,),
    Channel.EMAIL: (Action.EMAIL,),
    Channel.LINKEDIN: (Action.MESSAGE, Action.CONNECTION_REQUEST, Action.INMAIL),
    Channel.MATRIX: (Action.MESSAGE,),
}
WITH_SUBJECT = frozenset({Action.EMAIL, Action.INMAIL})

COPIED = (
    "channel",
    "action",
    "subject",
    "schedule",
    "cron",
    "zone",
    "on_overlap",
    "on_paused",
    "window_start_hour",
    "window_end_hour",
    "send_days",
    "on_close",
    "priority",
    "drip",
    "drip_gap_min",
    "drip_gap_max",
    "second_message_hours",
    "follow_up_max_attempts",
    "follow_up_cooldown_hours",
)


class NotPossibleError(ValueError):
    """The reminder's state does not allow this. The text says why and what to do."""


@transaction.atomic
def begin(owner: User) -> Reminder:
    """Return a draft to write in: one that was begun and left untouched, or a new one.

    Two requests, by a double click or a browser that loads ahead, make one row. An owner's only account is chosen
    already.
    """
    User.objects.select_for_update(no_key=True).get(pk=owner.pk)
    untouched = Reminder.objects.filter(owner=owner).untouched().order_by("-id").first()
    if untouched is not None:
        return untouched
    accounts = Account.objects.filter(owner=owner, archived_at=None).defer("credentials")[:2]
    first = accounts[0] if accounts else None
    channel = Channel(first.channel) if first else Channel.WHATSAPP
    reminder = Reminder.objects.create(
        owner=owner,
        channel=channel,
        action=ACTIONS[channel][0],
        zone=owner.zone or timezone.get_default_timezone_name(),
    )
    if first is not None and len(accounts) == 1:
        ReminderAccount.objects.create(reminder=reminder, account=first)
    record("reminder.added", reminder)
    return reminder


@transaction.atomic
def create(owner: User, *, name: str = "", by: User) -> Reminder:
    """Return a new draft of `owner`, made by a person who may add something for them."""
    if not owners_for(by, Role.WRITE).filter(pk=owner.pk).exists():
        raise PermissionDenied("You may not write reminders for this owner. Ask them for the role Write.")
    reminder = Reminder.objects.create(
        owner=owner, name=name, zone=owner.zone or timezone.get_default_timezone_name()
    )
    record("reminder.added", reminder, by=by)
    return reminder


@transaction.atomic
def duplicate(reminder: Reminder, *, by: User) -> Reminder:
    """Return a draft with the same message, recipients, accounts and window, without a time."""
    require_touch(reminder, by, Role.WRITE)
    copied = {name: getattr(reminder, name) for name in COPIED}
    copy = Reminder.objects.create(
        owner=reminder.owner, name=f"Copy of {reminder}"[: NAME_LENGTH * 3], edited_by=by, **copied
    )
    Part.objects.bulk_create(
        [
            Part(
                reminder=copy,
                role=part.role,
                position=part.position,
                kind=part.kind,
                text=part.text,
                other_wordings=part.other_wordings,
                media_id=part.media_id,
            )
            for part in reminder.parts.all()
        ]
    )
    FollowUpStep.objects.bulk_create(
        [
            FollowUpStep(
                reminder=copy,
                position=step.position,
                after_hours=step.after_hours,
                text=step.text,
                other_wordings=step.other_wordings,
                urgency=step.urgency,
            )
            for step in reminder.follow_up_steps.all()
        ]
    )
    ReminderAccount.objects.bulk_create(
        [
            ReminderAccount(reminder=copy, account_id=share.account_id, position=share.position)
            for share in reminder.reminder_accounts.all()
        ]
    )
    copy.tags.set(reminder.tags.all())
    chosen = Reminder.recipients.through.objects.filter(reminder=reminder).values_list(
        "recipient_id", flat=True
    )
    rows = (Reminder.recipients.through(reminder=copy, recipient_id=pk) for pk in chosen.iterator())
    Reminder.recipients.through.objects.bulk_create(rows, batch_size=10_000)
    record("reminder.copied", copy, by=by, after={"from": reminder.pk})
    return copy


@transaction.atomic
def archive(reminder: Reminder, *, by: User) -> Reminder:
    """Archive the reminder; its runs stay. A scheduled one is switched off first."""
    reminder = locked_to_edit(reminder, by=by)
    if reminder.status == Reminder.Status.SCHEDULED:
        raise NotPossibleError(f"{reminder} is still scheduled. Switch it off first, then archive it.")
    if Run.objects.open().filter(reminder=reminder).exists():
        raise NotPossibleError(f"{reminder} has a run under way. Wait for its end, or cancel it first.")
    why = "archived it while it waited for approval."
    close_of(reminder.pk, [Approval.Kind.REMINDER, Approval.Kind.SEND], why=why, by=by)
    reminder.archived_at = reminder.archived_at or timezone.now()
    reminder.save(update_fields=["archived_at", "updated_at"])
    record("reminder.archived", reminder, by=by)
    return reminder


@transaction.atomic
def unarchive(reminder: Reminder, *, by: User) -> Reminder:
    reminder = locked_to_edit(reminder, by=by)
    if reminder.carries_messages:
        raise NotPossibleError(f"{reminder} only carries single messages. Make a new reminder instead.")
    if reminder.carries_queue:
        raise NotPossibleError(f"{reminder} only carries the items of a queue. Unarchive the queue instead.")
    reminder.archived_at = None
    reminder.save(update_fields=["archived_at", "updated_at"])
    record("reminder.unarchived", reminder, by=by)
    return reminder


@transaction.atomic
def discard(reminder: Reminder, *, by: User) -> None:
    """Delete a draft that never ran."""
    reminder = locked_to_edit(reminder, by=by)
    if reminder.status != Reminder.Status.DRAFT or Run.objects.filter(reminder=reminder).exists():
        raise NotPossibleError(f"{reminder} is not a draft any more. Archive it instead.")
    record("reminder.deleted", reminder, by=by)
    reminder.delete()


def name_from(text: str, values: Mapping[str, object] | None = None) -> str:
    """Return a name for a reminder without one: the first words of its message, as a recipient reads them.

    A variable without a value is left out; of a choice, the first option is taken.
    """
    known = values or {}
    plain = "".join(piece if isinstance(piece, str) else piece.options[0] for piece in cut(text))
    text = VARIABLE.sub(lambda match: str(known.get(match[1]) or ""), plain)
    text = re.sub(r"[ \t]+", " ", re.sub(r"\s+([,.;:!?])", r"\1", text))
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    if len(line) <= NAME_LENGTH:
        return line
    return line[:NAME_LENGTH].rsplit(" ", 1)[0].rstrip(" ,.;:") + "\N{HORIZONTAL ELLIPSIS}"


def locked_to_edit(reminder: Reminder, *, by: User) -> Reminder:
    """Return the reminder as it is now, locked until this transaction ends; raise PermissionDenied.

    The role is decided after the lock: the draft may have been scheduled a moment ago.
    """
    locked = Reminder.objects.select_for_update(no_key=True).get(pk=reminder.pk)
    require_touch(locked, by, locked.role_to_edit)
    if locked.edited_by_id != by.pk:
        Reminder.objects.filter(pk=reminder.pk).update(edited_by=by)
    after_edit(locked, by=by)
    return locked
