"""Sends due follow-ups as runs of their own, and counts them once they have landed (SPEC C4).

A recipient has at most one on its way, so nobody gets a fourth while the third has not been counted.
"""

from collections import Counter
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet, Window
from django.db.models.functions import RowNumber
from django.utils import timezone

from delivery.fanout import Firing, make_runs
from delivery.models import Run, RunTarget
from delivery.parts import FrozenPart, all_wordings
from delivery.states import SETTLED_TARGET, TargetStatus
from reminders.approvals.asking import held_conversations
from reminders.conversations.answered import spoke_since, when_left
from reminders.fire import continue_conversation
from reminders.follow_ups import queue, rules, senders
from reminders.follow_ups.rules import Reason
from reminders.models import FollowUp, FollowUpStep, Reminder

BATCH = 500
ASKED_AGAIN = timedelta(minutes=5)  # follow-ups that wait for an approval
Status = FollowUp.Status


@transaction.atomic
def send_due(*, now: datetime | None = None) -> int:
    """Hand over due follow-ups, one run per step; return how many. Follow-ups that must not be sent are removed."""
    now = now or timezone.now()
    queue.lock()
    going: dict[int, list[FollowUp]] = {}
    removed, busy = Counter[str](), set[int]()
    for follow_up in _approved(_due(now), now):
        if follow_up.recipient_id in busy:
            continue  # one at a time: this one is sent when the other is settled
        if reason := _why_not(follow_up, now):
            _end(follow_up, Status.REMOVED, now, reason)
            removed[reason] += 1
        elif follow_up.step_id is not None:
            busy.add(follow_up.recipient_id)
            going.setdefault(follow_up.step_id, []).append(follow_up)
    _hand_over(list(going.values()))
    queue.tell_removed(removed, by="sending")
    return len(busy)


@transaction.atomic
def settle() -> int:
    """Count landed follow-ups: an attempt each, and after the last one a cooldown; return how many."""
    queue.lock()
    landed = _locked(FollowUp.objects.filter(status=Status.SENDING, sent_as__status__in=SETTLED_TARGET))
    happened, removed = Counter[tuple[str, str]](), Counter[str]()
    for follow_up in landed:
        target = follow_up.sent_as
        if target is None:
            continue
        at = target.settled_at or timezone.now()
        if target.status != TargetStatus.SKIPPED and (attempt := _count(follow_up, target, at)):
            happened["follow_up_attempts", str(attempt)] += 1
            happened["cooldowns", "started"] += follow_up.recipient.cooldown_until is not None
        if target.status in {TargetStatus.SENT, TargetStatus.UNCONFIRMED}:
            _end(follow_up, Status.SENT, at)
            happened["follow_ups_sent", follow_up.urgency] += 1
        else:
            reason = _why_not(follow_up, at) if target.status == TargetStatus.SKIPPED else None
            _end(follow_up, Status.REMOVED, at, reason or Reason.NOT_DELIVERED)
            removed[reason or Reason.NOT_DELIVERED] += 1
    queue.tell_removed(removed, by="landing")
    queue.tell_events(happened)
    return len(landed)


def _due(now: datetime) -> list[FollowUp]:
    on_its_way = FollowUp.objects.filter(recipient=OuterRef("recipient"), status=Status.SENDING)
    due = FollowUp.objects.filter(~Exists(on_its_way), status=Status.QUEUED, due_at__lte=now)
    return _locked(due)


def _approved(found: list[FollowUp], now: datetime) -> list[FollowUp]:
    """Return those whose reminder was not changed since somebody approved it; the others are asked about later."""
    held = held_conversations(list({each.target.run.reminder_id for each in found}))
    waits = [each for each in found if each.target.run.reminder_id in held]
    if waits:
        FollowUp.objects.filter(pk__in=[each.pk for each in waits]).update(due_at=now + ASKED_AGAIN)
    return [each for each in found if each.target.run.reminder_id not in held]


def _locked(rows: QuerySet[FollowUp]) -> list[FollowUp]:
    """Return the oldest follow-ups of each owner in turn, with their recipients, as they are now.

    Rows locked by a reply are left to that reply.
    """
    turn = Window(RowNumber(), partition_by="recipient__owner", order_by=["due_at", "id"])
    chosen = rows.annotate(turn=turn).order_by("turn", "due_at", "id").values_list("pk", flat=True)[:BATCH]
    found = rows.filter(pk__in=list(chosen)).select_related(
        "recipient", "step", "target__account", "target__run__reminder", "sent_as"
    )
    found = found.defer("target__account__credentials", "target__run__parts").order_by("due_at", "id")
    return list(found.select_for_update(skip_locked=True, no_key=True, of=("self", "recipient")))


def _why_not(follow_up: FollowUp, now: datetime) -> Reason | None:
    reminder = follow_up.target.run.reminder
    if follow_up.target.returned_at is not None:
        return Reason.RETURNED
    if follow_up.step is None:
        return Reason.STEP_REMOVED
    if queue.silenced(reminder):
        return Reason.SWITCHED_OFF
    if follow_up.target.account.archived_at is not None and not senders.able(reminder):
        return Reason.ACCOUNT_GONE
    contact = queue.contact_of(follow_up.recipient)
    return rules.why_not(contact, now=now, most=queue.patience(reminder).most)


def _hand_over(groups: list[list[FollowUp]]) -> None:
    runs = make_runs([_firing(group) for group in groups])
    for run, group in zip(runs, groups, strict=True):
        made = dict(RunTarget.objects.filter(run=run).values_list("recipient_id", "pk"))
        for follow_up in group:
            follow_up.status, follow_up.sent_as_id = Status.SENDING, made[follow_up.recipient_id]
        FollowUp.objects.bulk_update(group, ["status", "sent_as"])


def _firing(group: list[FollowUp]) -> Firing:
    """Return one firing for all follow-ups of a step, each sent from the account that wrote before, while it can."""
    first = group[0]
    firsts = [follow_up.target for follow_up in group]
    reminder, parts = first.target.run.reminder, _parts(first.step)
    moved = senders.others(reminder, firsts, parts=len(parts), now=timezone.now())
    return continue_conversation(reminder, Run.Kind.FOLLOW_UP, parts, firsts, moved)


def _parts(step: FollowUpStep | None) -> list[FrozenPart]:
    if step is None:
        return []
    wordings = all_wordings(step.text, step.other_wordings)
    return [FrozenPart(kind="text", text=step.text, wordings=wordings)]


def _count(follow_up: FollowUp, target: RunTarget, at: datetime) -> int:
    """Count one more attempt, unless they have written since it left; return its number, or 0.

    A failed follow-up counts too: a person may send it again by hand.
    """
    recipient = follow_up.recipient
    if spoke_since(recipient, when_left(target) or at):
        return 0
    reminder: Reminder = follow_up.target.run.reminder
    contact = rules.after_attempt(queue.contact_of(recipient), now=at, patience=queue.patience(reminder))
    recipient.attempts, recipient.cooldown_until = contact.attempts, contact.cooldown_until
    recipient.not_interested_at = (recipient.not_interested_at or at) if contact.not_interested else None
    recipient.save(update_fields=["attempts", "cooldown_until", "not_interested_at"])
    return contact.attempts


def _end(follow_up: FollowUp, status: Status, at: datetime, reason: str = "") -> None:
    follow_up.status, follow_up.ended_at, follow_up.removed_reason = status, at, reason
    follow_up.save(update_fields=["status", "ended_at", "removed_reason"])
