"""Sends one message to one recipient, without a reminder of its own.

The message is a run with one target, on the same engine, limits, window and rules as any other. A run belongs to a
reminder, so each owner has one for each channel that carries such runs. It is archived, and never fired itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.utils import timezone

from accounts.models import Account, Recipient, Role, User
from accounts.recipients.contacts import last_to_talk
from accounts.roles import require_touch
from audit.record import record
from delivery.audience import GROUPS
from delivery.fanout import Firing, make_run
from delivery.lifecycle import WrongStateError
from delivery.limits import lookup
from delivery.models import Run, RunTarget
from delivery.parts import variables
from delivery.planning import rooms
from delivery.states import TargetStatus
from delivery.window import Window
from reminders.drafts import ACTIONS, WITH_SUBJECT, NotPossibleError
from reminders.fire import frozen
from reminders.message import MOST_PARTS, TypedPart, wording_trouble
from reminders.models import Part, Reminder

NAME_LENGTH = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """One message: from one of these accounts, to one recipient, in a window, at once or not before a time."""

    accounts: Sequence[Account]
    recipient: Recipient
    parts: Sequence[TypedPart]
    window: Window
    send_days: int
    subject: str = ""
    priority: int = 0
    not_before: datetime | None = None


@transaction.atomic
def send(letter: Letter, *, by: User) -> RunTarget:
    """Make the run of one message and return its target; raise NotPossibleError with what is wrong.

    It waits for its window by itself, and continues by itself when the window opens again.
    """
    recipient = letter.recipient
    for row in (recipient, *letter.accounts):
        require_touch(row, by, Role.SEND)
    if why := why_not(letter):
        raise NotPossibleError(why)
    account = pick(letter.accounts, recipient, now=timezone.now())
    run = make_run(_firing(letter, account, _carrier(recipient)))
    target = RunTarget.objects.select_related("run", "recipient", "account").get(run=run)
    if target.status == TargetStatus.SKIPPED:  # they opted out a moment ago
        raise WrongStateError(f"{recipient}: {target.error}. Nothing is sent.")
    if letter.not_before is not None and letter.not_before > target.not_before:
        target.not_before = letter.not_before
        target.save(update_fields=["not_before"])
    shown = {"recipient": recipient.pk, "account": account.pk, "not_before": letter.not_before}
    record("message.sent", run, by=by, after=shown)
    return target


def why_not(letter: Letter) -> str:
    """Return why the message cannot be sent, and what to do; empty if it can."""
    reasons = (_about_recipient, _about_accounts, _about_message, _about_values)
    return next((why for reason in reasons if (why := reason(letter))), "")


def pick(accounts: Sequence[Account], recipient: Recipient, *, now: datetime) -> Account:
    """Return the account that writes: the only one that reaches the recipient, else the one that talked with them last,
    else the one that has most room today. Accounts that cannot send now are chosen only where no other is left.
    """
    tied = [account for account in accounts if account.pk == recipient.account_id]
    able = [account for account in accounts if account.status == Account.Status.ACTIVE]
    by_id = {account.pk: account for account in tied or able or accounts}
    if len(by_id) == 1:
        return next(iter(by_id.values()))
    last = last_to_talk(recipient, by_id)
    if last is None:
        action = ACTIONS[recipient.channel][0]
        deal = rooms.deal(list(by_id), action, parts=1, now=now)
        last = deal.next(group=recipient.kind in GROUPS)
    return by_id[last]


def _about_recipient(letter: Letter) -> str:
    recipient = letter.recipient
    if recipient.opted_out_at is not None:
        return f"{recipient} has opted out. Nothing is sent until they opt in again."
    if recipient.blocked_at is not None:
        return f"{recipient} is blocked. Unblock them first."
    if recipient.archived_at is not None:
        return f"{recipient} is archived. Unarchive it first."
    return f"{recipient} cannot be reached: {recipient.problem}." if recipient.problem else ""


def _about_accounts(letter: Letter) -> str:
    recipient = letter.recipient
    for account in letter.accounts:
        if account.owner_id != recipient.owner_id:
            return f"{account} and {recipient} belong to different owners. Choose another account."
        if account.channel != recipient.channel:
            return f"{account} does not reach {recipient}: it is on another channel. Choose another account."
        if account.archived_at is not None:
            return f"{account} is archived. Unarchive it first, or choose another account."
        if account.needs_approval:
            return (
                f"Everything from {account} needs approval, and a single message cannot wait for it. "
                "Send a reminder to this recipient, or choose another account."
            )
    if recipient.account_id and recipient.account_id not in {account.pk for account in letter.accounts}:
        return f"{recipient} is reached only by another account. Choose that one."
    return ""


def _about_message(letter: Letter) -> str:
    action = ACTIONS[letter.recipient.channel][0]
    if not letter.parts:
        return "There is no message. Write a text, or name a file."
    if len(letter.parts) > MOST_PARTS:
        return f"A message has at most {MOST_PARTS} parts, since each is sent by itself."
    if action in WITH_SUBJECT and not letter.subject.strip():
        return f"{action.label} needs a subject. Write one."
    return wording_trouble(letter.parts) or lookup.why_never_from(letter.accounts, action, len(letter.parts))


def _about_values(letter: Letter) -> str:
    """Return which variables of the message have no value for this recipient."""
    texts = [letter.subject, *(text for part in letter.parts for text in part.wordings)]
    known = {"name": letter.recipient.name, "address": letter.recipient.address, **letter.recipient.fields}
    missing = [name for text in texts for name in variables(text) if not str(known.get(name) or "")]
    if not missing:
        return ""
    names = ", ".join(f"{{{{ {name} }}}}" for name in dict.fromkeys(missing))
    return f"{letter.recipient} has no value for {names}. Give it one, or leave it out of the text."


def _firing(letter: Letter, account: Account, carrier: Reminder) -> Firing:
    parts = [
        Part(
            kind=Part.Kind.MEDIA if part.media else Part.Kind.TEXT,
            text=part.text,
            other_wordings=None if part.others is None else list(part.others),
            media=part.media,
        )
        for part in letter.parts
    ]
    return Firing(
        reminder_id=carrier.pk,
        owner_id=carrier.owner_id,
        name=f"Message to {letter.recipient}"[:NAME_LENGTH],
        action=ACTIONS[account.channel][0],
        subject=letter.subject,
        parts=[frozen(part) for part in parts],
        zone=letter.window.zone,
        window_start_hour=letter.window.start_hour,
        window_end_hour=letter.window.end_hour,
        send_days=letter.send_days,
        resumes_by_itself=True,
        priority=letter.priority,
        account_ids=[account.pk],
        kind=Run.Kind.MESSAGE,
        given=[(letter.recipient.pk, account.pk)],
    )


def _carrier(recipient: Recipient) -> Reminder:
    """Return the reminder that carries the single messages of an owner on a channel; made with the first of them."""
    known = Reminder.objects.filter(
        owner=recipient.owner_id, channel=recipient.channel, carries_messages=True
    )
    if found := known.first():
        return found
    User.objects.select_for_update(no_key=True).get(pk=recipient.owner_id)
    return known.first() or Reminder.objects.create(
        owner_id=recipient.owner_id,
        name=f"Single messages by {recipient.get_channel_display()}",
        status=Reminder.Status.OFF,
        channel=recipient.channel,
        action=ACTIONS[recipient.channel][0],
        schedule=Reminder.Schedule.BY_HAND,
        carries_messages=True,
        archived_at=timezone.now(),
    )
