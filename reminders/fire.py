"""Fires a reminder: its frozen copy becomes a run. Every firing of the product is made here."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache
from uuid import UUID, uuid4

from django.conf import settings
from django.db import transaction
from django.db.models import Prefetch, prefetch_related_objects

from accounts.models import Role, User
from accounts.models.account import Action
from accounts.roles import require_touch
from audit.record import record
from config.shares import Shares
from delivery.fanout import Firing, NothingToSendError, make_run
from delivery.lifecycle import WrongStateError
from delivery.models import Run, RunTarget
from delivery.parts import FrozenPart, all_wordings
from reminders.models import Part, Reminder, ReminderAccount

SENDERS = ReminderAccount.objects.select_related("account").defer("account__credentials")


class BusyError(WrongStateError):
    """Raised when too many reminders are being started at once: the same try works a little later."""


@cache
def starts() -> Shares:
    """Return the places for starting reminders by hand in this process: each place uses a database connection."""
    return Shares(total=max(2, settings.DATABASE_POOL // 2), each=max(1, settings.DATABASE_POOL // 4))


def fire(
    reminder: Reminder,
    *,
    by: User | None = None,
    key: UUID | None = None,
    undo: timedelta = timedelta(),
    without: Sequence[int] = (),
    after: int | None = None,
) -> Run:
    """Make a run by hand and return it. `by_hand/send.py` is what people call: it asks first where it should.

    Raise WrongStateError while the last run is open: a second click must not send everything again. A page gives
    each of its buttons a `key`: when the button is pressed twice, the run of the first press is returned. A large run
    can be undone for `undo`; those who received a run in `without` are left out. `after` is the newest run that the
    person knew of: a newer one, even if it has ended, is something to look at first.
    """
    if by is not None:
        require_touch(reminder, by, Role.SEND)
    if starts().take(reminder.owner_id):
        raise BusyError("Other reminders are being started right now. Try again in a few seconds.")
    try:
        return _fire(reminder, key, undo, without, after, by)
    finally:
        starts().give_back(reminder.owner_id)


@transaction.atomic
def _fire(
    reminder: Reminder,
    key: UUID | None,
    undo: timedelta,
    without: Sequence[int],
    after: int | None,
    by: User | None,
) -> Run:
    reminder = Reminder.objects.select_for_update(no_key=True).get(pk=reminder.pk)
    if known := Run.objects.filter(reminder=reminder, key=key).first() if key else None:
        return known
    last = Run.objects.in_the_way().filter(reminder=reminder, kind=Run.Kind.REMINDER).first()
    if last is not None:
        raise WrongStateError(
            f"Run {last.pk} of this reminder is still {last.shown_status}. Wait for its end, or cancel it first."
        )
    _refuse_unseen(reminder, after)
    load_for_freezing([reminder])
    firing = replace(freeze(reminder), key=key or uuid4(), undo=undo, without=without)
    run = _reaches_somebody(make_run(firing))
    record("reminder.fired", reminder, by=by, after={"run": run.pk, "recipients": run.total})
    return run


def _refuse_unseen(reminder: Reminder, after: int | None) -> None:
    """Raise WrongStateError where the reminder was sent since the person looked: they may get it twice."""
    if after is None:
        return
    rows = Run.objects.filter(reminder=reminder, kind=Run.Kind.REMINDER, pk__gt=after, total__gt=0)
    if unseen := rows.first():
        raise WrongStateError(
            f"Run {unseen.pk} of this reminder was sent a moment ago. Look at it, then decide."
        )


def _reaches_somebody(run: Run) -> Run:
    """Return the run; raise NothingToSendError, which takes it back, when all its recipients are left out."""
    if run.left_out == run.total:
        reasons = run.targets.values_list("error", flat=True).order_by("error").distinct()[:5]
        raise NothingToSendError(
            f"Nobody would get it: all {run.total:,} recipients are left out ({', '.join(reasons)}). Choose others."
            if run.total > 1
            else f"Nobody would get it: its only recipient is left out ({', '.join(reasons)}). Choose others."
        )
    return run


def key_of(typed: str) -> UUID:
    """Return the key that a form of a page carries; a new one where there is none, as from a script."""
    try:
        return UUID(typed)
    except ValueError:
        return uuid4()


def refuse_drafts(reminder: Reminder) -> None:
    """Raise WrongStateError when a person fires a reminder that is a draft or archived."""
    if reminder.status == Reminder.Status.DRAFT or reminder.archived_at is not None:
        raise WrongStateError(f"{reminder} is a draft or archived. Schedule it first, then send it.")


def load_for_freezing(reminders: Iterable[Reminder]) -> None:
    """Read all rows that `freeze` needs, for many reminders at once."""
    prefetch_related_objects(list(reminders), "parts__media", Prefetch("reminder_accounts", SENDERS.all()))


def freeze(
    reminder: Reminder, *, due_at: datetime | None = None, behind: int | None = None, why_not: str = ""
) -> Firing:
    """Return the frozen copy of a reminder. Accounts that are archived by now are left out."""
    parts = [frozen(part) for part in reminder.parts.all() if part.role == Part.Role.FIRST]
    senders = [sender for sender in reminder.reminder_accounts.all() if sender.account.archived_at is None]
    return replace(
        _firing(reminder, parts, [sender.account_id for sender in senders]),
        resumes_by_itself=reminder.on_close == Reminder.OnClose.RESUME,
        drip=(reminder.drip_gap_min, reminder.drip_gap_max) if reminder.drip else None,
        due_at=due_at,
        behind=behind,
        why_not=why_not,
    )


def continue_conversation(
    source: Reminder | Run,
    kind: Run.Kind,
    parts: Sequence[FrozenPart],
    firsts: Sequence[RunTarget],
    senders: Mapping[int, int] | None = None,
) -> Firing:
    """Return the firing of a second message or a follow-up to the recipients of the targets in `firsts`.

    The account that wrote to them before writes again, unless `senders` names another for a target; e-mails continue
    the thread. Such a run waits for the next window by itself: nobody has to resume it.
    """
    senders = senders or {}
    given = [(first.recipient_id, senders.get(first.pk, first.account_id)) for first in firsts]
    firing = _firing(source, parts, list(dict.fromkeys(account_id for _, account_id in given)))
    # A recipient who accepted an invitation is written to by messages from then on.
    invited = firing.action == Action.CONNECTION_REQUEST
    return replace(
        firing,
        kind=kind,
        given=given,
        follows=[first.pk for first in firsts],
        action=Action.MESSAGE if invited else firing.action,
        resumes_by_itself=True,
    )


def _firing(source: Reminder | Run, parts: Sequence[FrozenPart], account_ids: Sequence[int]) -> Firing:
    """Return what every firing copies from its source: a reminder as it is now, or as an earlier run froze it."""
    return Firing(
        reminder_id=source.reminder_id if isinstance(source, Run) else source.pk,
        owner_id=source.owner_id,
        name=source.name if isinstance(source, Run) else str(source),
        action=source.action,
        subject=source.subject,
        parts=parts,
        zone=source.zone,
        window_start_hour=source.window_start_hour,
        window_end_hour=source.window_end_hour,
        send_days=source.send_days,
        resumes_by_itself=False,
        priority=source.priority,
        account_ids=account_ids,
    )


def frozen(part: Part) -> FrozenPart:
    wordings = all_wordings(part.text, part.other_wordings)
    if part.media is None:
        return FrozenPart(kind="text", text=part.text, wordings=wordings)
    return FrozenPart(
        kind="media",
        text=part.text,
        wordings=wordings,
        sha256=part.media.sha256,
        file=part.media.file.name or "",
        filename=part.media.filename,
        content_type=part.media.content_type,
    )
