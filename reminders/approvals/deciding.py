"""Does what a decision says. Pages, the bell, browser notifications, the admin, the API and the command come here.

1. Lock what it is about, and take the request by one conditional UPDATE, for the content that the person saw.
2. Approve: look again at what would leave and at the right of who asked; then send, hand over or loosen. What waits for
   its own moment only keeps the approval.
3. Refuse: the reminder is a draft again, or switched off where it ran before.
4. Tell who asked.
"""

from django.db import transaction

from accounts.approvals import needs, rules, strictness
from accounts.approvals.requests import DecidedError, State, take, tell_outcome
from accounts.models import Approval, Role, User
from accounts.roles import may_touch
from delivery.fanout import NothingToSendError
from delivery.hand_over.move import hand_over
from delivery.hand_over.split import Wish
from delivery.models import Run
from delivery.states import IllegalMoveError
from reminders.approvals.asking import need_of
from reminders.approvals.content import content_of
from reminders.by_hand.last_look import LastLook
from reminders.by_hand.send import send
from reminders.models import Reminder

Kind = Approval.Kind
CHANGED = "This was changed since you looked. Look at it again, then decide."
UNASKED = (
    "Whoever asked for this may not send or change this for this owner any more. Refuse it, or ask for it yourself "
    "and let somebody else decide."
)
NO_REASON = "Say why, in a few words: who asked reads it."


@transaction.atomic
def approve(approval: Approval, *, content: str, by: User, seen: int = 0) -> Approval:
    """Approve what the person saw, and let it leave; raise DecidedError where it is not that any more.

    `seen` is how many recipients they were shown, where these may have become more since it was asked for.
    """
    reminder = _locked(approval)
    found = take(approval, State.APPROVED, content=content, by=by)
    role = Role.MANAGE if found.kind == Kind.LOOSEN else Role.SEND
    if found.asked_by is not None and not may_touch(found, found.asked_by, role):
        raise DecidedError(UNASKED)
    try:
        if reminder is not None and found.kind in {Kind.REMINDER, Kind.SEND}:
            _refuse_changed(found, reminder, seen)
        told = _perform(found, reminder, by=by)
    except (IllegalMoveError, NothingToSendError) as error:
        raise DecidedError(str(error)) from error
    tell_outcome(
        found,
        [found.asked_by_id],
        title=f"Approved: {found.title}",
        body=f"{by} approved it. {told}",
        url=url_of(found),
    )
    return found


@transaction.atomic
def refuse(approval: Approval, *, content: str, reason: str, by: User) -> Approval:
    """Refuse what the person saw, with a reason."""
    reason = " ".join(reason.replace("\0", "").split())
    if not reason:
        raise DecidedError(NO_REASON)
    reminder = _locked(approval)
    found = take(approval, State.REFUSED, content=content, by=by, reason=reason)
    if reminder is not None and found.kind == Kind.REMINDER:
        _take_back(reminder)
    tell_outcome(
        found,
        [found.asked_by_id],
        title=f"Not approved: {found.title}",
        body=f"{by}: {reason}",
        url=url_of(found),
    )
    return found


def url_of(approval: Approval) -> str:
    """Return the address of what was decided."""
    if approval.run_id is not None:
        return f"/runs/{approval.run_id}/"
    if approval.kind in {Kind.REMINDER, Kind.SEND}:
        return f"/reminders/{approval.reminder_id}/"
    return f"/approvals/{approval.pk}/"


def _locked(approval: Approval) -> Reminder | None:
    rows = Reminder.objects.select_for_update(no_key=True)
    return rows.filter(pk=approval.reminder_id).first() if approval.reminder_id is not None else None


def _perform(approval: Approval, reminder: Reminder | None, *, by: User) -> str:
    """Do what was approved; return what happens now, in a sentence."""
    match approval.kind:
        case Kind.REMINDER if reminder is not None:
            return _keep(reminder)
        case Kind.SEND if reminder is not None:
            return _send(approval, reminder, by)
        case Kind.HAND_OVER if approval.run_id is not None:
            return _hand_over(approval, by)
        case Kind.LOOSEN:
            strictness.apply(approval, by=by)
            return "It holds now."
        case Kind.QUEUE:
            return "Give it its items now."
        case _:
            raise DecidedError("What this was about is no longer there.")


def _refuse_changed(approval: Approval, reminder: Reminder, seen: int) -> None:
    """Raise DecidedError where something else would leave than what was asked for, or to more recipients than seen."""
    need = need_of(reminder, needs.number_of(reminder.owner_id))
    _cover(approval, min(seen, need.recipients))
    if content_of(reminder) != approval.content or need.recipients > approval.covers:
        raise DecidedError(CHANGED)


def _cover(approval: Approval, recipients: int) -> None:
    """Let the approval be for those who were shown, where these are more than it was asked for."""
    if recipients > approval.covers:
        approval.recipients, approval.covers = recipients, rules.covers(recipients)
        approval.save(update_fields=["recipients", "covers"])


def _keep(reminder: Reminder) -> str:
    if reminder.status == Reminder.Status.DRAFT or reminder.archived_at is not None:
        raise DecidedError(f"{reminder} is a draft or archived. Nothing waits for you.")
    return "It is sent at its time."


def _send(approval: Approval, reminder: Reminder, by: User) -> str:
    said = {**approval.said, "confirmed": "1", "number": str(approval.covers)}
    made = send(reminder, by=by, said=said, key=approval.key, approved=True)
    if isinstance(made, LastLook):
        raise DecidedError(f"Something changed since it was asked for. {' '.join(made.sentences)} Refuse it.")
    if isinstance(made, Run):
        Approval.objects.filter(pk=approval.pk).update(run=made)
        approval.run = made
    return "It is being sent."


def _hand_over(approval: Approval, by: User) -> str:
    said, run = approval.said, Run.objects.get(pk=approval.run_id or 0)
    wish = Wish(to=said["to"], known=said["known"], of=said["of"])
    done = hand_over(run, wish, by=by, most=approval.covers)
    return f"{done.split.moved:,} messages were handed over."


def _take_back(reminder: Reminder) -> None:
    """Switch a refused reminder off; one that never ran is a draft again."""
    if reminder.status != Reminder.Status.SCHEDULED:
        return
    ran = Run.objects.filter(reminder=reminder).exists()
    reminder.status = Reminder.Status.OFF if ran else Reminder.Status.DRAFT
    reminder.next_fire_at = None
    reminder.save(update_fields=["status", "next_fire_at", "updated_at"])
