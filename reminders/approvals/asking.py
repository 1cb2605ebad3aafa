"""Asks for the approval of a reminder: when it is scheduled, sent by hand, or edited after that."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from django.db import transaction
from django.db.models import QuerySet

from accounts.approvals import needs, rules
from accounts.approvals.requests import LASTS, Wanted, ask, close_of
from accounts.models import Account, Approval, User
from delivery import audience
from reminders.approvals.content import content_of, conversation_of, of_conversation
from reminders.models import Part, Reminder

Kind = Approval.Kind
ANSWERS = ("again", "without")
CHANGED_MEANWHILE = "changed it while it waited for approval. Send it again, if it still matters."
CHANGED_SINCE = "Its follow-ups or its second message were changed after it was approved."


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """Why a reminder needs a second person, empty where it does not, and how many it reaches now."""

    why: str
    recipients: int = 0

    def __bool__(self) -> bool:
        return bool(self.why)


def need_of(reminder: Reminder, above: int | None) -> Need:
    """Return whether a reminder needs a second person now; its recipients are counted only where it matters."""
    senders = list(_senders(reminder).values_list("pk", "name", "needs_approval"))
    marked = [name for _, name, needed in senders if needed]
    if above is None and not marked:
        return Need(why="")
    reached = _reached(reminder, [pk for pk, *_ in senders])
    return Need(why=rules.why_needed(reached, above=above, marked=marked), recipients=reached)


def _need_of_conversation(reminder: Reminder) -> Need:
    """Return the need of what follows runs that were approved, also where the next run needs nobody."""
    reached = _reached(reminder, list(_senders(reminder).values_list("pk", flat=True)))
    return Need(why=CHANGED_SINCE, recipients=reached)


def _senders(reminder: Reminder) -> QuerySet[Account]:
    rows = Account.objects.filter(reminder_accounts__reminder=reminder, archived_at=None)
    return rows.order_by("name")


def _reached(reminder: Reminder, account_ids: list[int]) -> int:
    return audience.count(reminder.pk, account_ids).reached if account_ids else 0


def ask_to_schedule(reminder: Reminder, *, by: User | None, keep: bool = False) -> Approval | None:
    """Return the request that a scheduled reminder waits for, if it does. The caller holds the reminder's lock.

    Who schedules it now is who asks, unless `keep`: then a request for the same content stays with who asked before.
    """
    need = need_of(reminder, needs.number_of(reminder.owner_id))
    if not need and held_conversations([reminder.pk]):
        need = _need_of_conversation(reminder)
    content = content_of(reminder) if need else ""
    if not need or needs.is_approved(
        reminder.pk, [Kind.REMINDER], content=content, recipients=need.recipients
    ):
        close_of(reminder.pk, [Kind.REMINDER])
        return None
    waits = waiting_for(reminder, Kind.REMINDER)
    stays = waits is not None and (keep or by is None or by.pk == waits.asked_by_id)
    if waits is not None and stays and _covers(waits, content, need):
        return waits
    return ask(_wanted(reminder, Kind.REMINDER, need, content), by=by)


def ask_to_send(reminder: Reminder, *, by: User | None, said: Mapping[str, str]) -> Approval | None:
    """Return the request that sending by hand waits for, if it does."""
    need = need_of(reminder, needs.number_of(reminder.owner_id))
    if not need:
        return None
    with transaction.atomic():
        locked = Reminder.objects.select_for_update(no_key=True).get(pk=reminder.pk)
        answers = {name: said[name] for name in ANSWERS if name in said}
        return ask(_wanted(locked, Kind.SEND, need, content_of(locked), answers), by=by)


def after_edit(reminder: Reminder, *, by: User | None) -> None:
    """Let an edit of a reminder that is not a draft any more ask again, when it is committed."""
    if reminder.status != Reminder.Status.DRAFT:
        transaction.on_commit(partial(edited, reminder.pk, by), robust=True)  # else the tick finds it


@transaction.atomic
def edited(reminder_id: int, by: User | None) -> None:
    """Ask again for a reminder that was edited: for its moments, or for what follows the runs that it has made."""
    found = Reminder.objects.select_for_update(no_key=True).filter(pk=reminder_id).first()
    if found is None:
        return
    if found.status == Reminder.Status.SCHEDULED and found.schedule != Reminder.Schedule.BY_HAND:
        ask_to_schedule(found, by=by, keep=True)
    elif held_conversations([found.pk]):
        ask(_wanted(found, Kind.REMINDER, _need_of_conversation(found), content_of(found)), by=by)
    if (waits := waiting_for(found, Kind.SEND)) and waits.content != content_of(found):
        close_of(found.pk, [Kind.SEND], why=CHANGED_MEANWHILE, by=by)


def held_conversations(reminder_ids: list[int]) -> set[int]:
    """Return the reminders whose follow-ups and second messages were changed since somebody approved them."""
    rows = Approval.objects.approved().filter(
        reminder__in=reminder_ids, kind__in=[Kind.REMINDER, Kind.SEND], reminder__carries_queue=False
    )
    approved: dict[int, set[str]] = {}
    for reminder_id, content in rows.values_list("reminder", "content"):
        approved.setdefault(int(reminder_id or 0), set()).add(of_conversation(content))
    found = Reminder.objects.in_bulk(approved) if approved else {}
    return {
        pk
        for pk, reminder in found.items()
        if continues(reminder) and conversation_of(reminder) not in approved[pk]
    }


def continues(reminder: Reminder) -> bool:
    """Return whether something follows the first message."""
    return reminder.follow_up_steps.exists() or reminder.parts.filter(role=Part.Role.SECOND).exists()


def waiting_for(reminder: Reminder, kind: Approval.Kind) -> Approval | None:
    return Approval.objects.waiting().filter(reminder=reminder, kind=kind).first()


def to_show(reminder: Reminder) -> list[Approval]:
    """Return what the page of a reminder shows: what waits, and the newest decision where it kept it from leaving."""
    found = Approval.objects.filter(reminder=reminder).select_related("decided_by").order_by("-pk")
    newest = list(found.exclude(state=Approval.State.WITHDRAWN)[:4])
    waits = [each for each in newest if each.state == Approval.State.WAITING]
    kept = {Approval.State.REFUSED, Approval.State.EXPIRED}
    return waits or [each for each in newest[:1] if each.state in kept]


def _covers(waits: Approval, content: str, need: Need) -> bool:
    return waits.content == content and waits.covers >= need.recipients


def _wanted(
    reminder: Reminder, kind: Approval.Kind, need: Need, content: str, said: Mapping[str, str] | None = None
) -> Wanted:
    return Wanted(
        owner_id=reminder.owner_id,
        kind=kind,
        title=str(reminder),
        why=need.why,
        content=content,
        recipients=need.recipients,
        said=dict(said or {}),
        reminder_id=reminder.pk,
        lasts=LASTS if kind == Kind.SEND else None,
    )
