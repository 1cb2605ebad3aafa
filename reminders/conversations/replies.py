"""Takes up what services reported and decides what each message means (SPEC C2, C3, C6).

Messages are handled here; all other events are handed to `delivery.inbound`. For each message:

1. Find the recipient's last message, which this answers.
2. Under the recipient's lock: note when they spoke, forget attempts, cooldown, "not interested" and "undeliverable",
   and take back the follow-ups that wait or are on their way.
3. If it is a stop word: opt them out, and that is all.
4. Else send the second message, where the reminder has one and it is time for it.

All of this may be done again without harm: a message that is reported twice, or two at once, change nothing more.
"""

from datetime import datetime

import structlog
from django.conf import settings
from django.db import transaction
from django.utils import timezone

from accounts.models import Recipient
from accounts.recipients import consent, contacts, undeliverable
from activity import counters
from activity.models import Inbound
from delivery.engine import wakeups
from delivery.health import counts
from delivery.inbound import aliases, receipts, store
from delivery.inbound.handle import (
    find_recipient,
    handle_event,
    lock_event,
    recipients_of,
    waiting_accounts,
    waiting_events,
)
from delivery.states import TargetStatus
from reminders.conversations import second_message
from reminders.conversations.answered import answered_by
from reminders.conversations.reply_event import reply_received
from reminders.conversations.stop_words import is_stop
from reminders.follow_ups.take_back import reply_came

log = structlog.get_logger(__name__)

STOPPED = "replied STOP"
LOOK_AGAIN_SECONDS = 2
SPEAKS_FOR_ITSELF = {Recipient.Kind.PERSON, Recipient.Kind.MAILBOX, Recipient.Kind.PROFILE}


def work(account_id: int) -> None:
    """Handle all that waits for one account; what fails is logged, and tried again by the next sweep."""
    receipts.settle(account_id)
    for inbound_id in waiting_events(account_id):
        try:
            take_up(inbound_id)
        except Exception:  # one event that cannot be handled must not hold up the others
            log.exception("inbound_failed", inbound=inbound_id, account=account_id)


def sweep() -> None:
    """Handle what was left: receipts that came before their message was noted, and the work of lost tasks."""
    for account_id in waiting_accounts():
        work(account_id)


@transaction.atomic
def take_up(inbound_id: int) -> None:
    """Handle one event under its lock; do nothing where another task holds it or has handled it."""
    inbound = lock_event(inbound_id)
    if inbound is None:
        return
    if inbound.kind == Inbound.Kind.MESSAGE:
        find_recipient(inbound)
        handle(inbound)
    else:
        handle_event(inbound)


def handle(inbound: Inbound) -> None:
    """Handle one message. The row is locked, its recipient is set if there is one, and this runs once for it.

    All changes are committed together with `handled_at`, or not at all. After an exception the next sweeps try the
    message again, for a day.
    """
    if inbound.recipient_id is None:
        _tell(inbound, "hidden address" if inbound.waits_for else "not a recipient")
    elif inbound.waits_for and inbound.handled_at is not None:
        _stop(inbound)  # written in a group, by a member who is known only now
    elif not _reply(inbound, inbound.recipient_id):
        return
    inbound.handled_at = timezone.now()
    inbound.save(update_fields=["handled_at"])
    reply_received(inbound)


def _reply(inbound: Inbound, recipient_id: int) -> bool:
    """Do all that the message asks for; return False where the message that it answers is not settled yet."""
    recipient = Recipient.objects.select_for_update(no_key=True).get(pk=recipient_id)
    said_at = min(inbound.at, inbound.created_at)
    inbound.target = answered_by(recipient, said_at)
    inbound.run_id = inbound.target.run_id if inbound.target else None
    inbound.save(update_fields=["target", "run"])
    _forgive(recipient, said_at)
    undeliverable.lift(recipient, how=undeliverable.WROTE)
    reply_came(recipient)
    if _says_stop(inbound):
        _stop(inbound)
        _tell(inbound, "stop")
        counts.note(inbound.account, replies=1, opt_outs=1)
        return True
    if first := second_message.on_its_way(recipient):
        if first.status == TargetStatus.SENDING:  # a pending one takes longer: the sweep looks often enough
            wakeups.send_on_commit(store.WORK, inbound.account_id, countdown=LOOK_AGAIN_SECONDS)
        return False
    answered = second_message.answer(recipient, said_at=said_at)
    _tell(inbound, "second message" if answered else "reply")
    contacts.talked(recipient, inbound.account_id, at=said_at)
    counts.note(inbound.account, replies=1)
    return True


def _says_stop(inbound: Inbound) -> bool:
    """Return whether the message asks to stop: in its text, or in the subject of an e-mail without other text."""
    words, subject = settings.STOP_WORDS, inbound.subject
    return is_stop(inbound.text, words) or (bool(subject) and is_stop(f"{subject}\n\n{inbound.text}", words))


def _tell(inbound: Inbound, brought: str) -> None:
    counters.tell(
        "replies",
        reason=brought,
        inbound=inbound.pk,
        account=inbound.account_id,
        recipient=inbound.recipient_id,
        target=inbound.target_id,
    )


def _forgive(recipient: Recipient, said_at: datetime) -> None:
    if recipient.cooldown_until is not None:
        counters.tell("cooldowns", reason="replied", recipient=recipient.pk)
    recipient.last_inbound_at = max(said_at, recipient.last_inbound_at or said_at)
    recipient.attempts, recipient.attempts_reset_at = 0, timezone.now()
    recipient.cooldown_until = recipient.not_interested_at = None
    recipient.save(
        update_fields=[
            "last_inbound_at",
            "attempts",
            "attempts_reset_at",
            "cooldown_until",
            "not_interested_at",
        ]
    )


def _stop(inbound: Inbound) -> None:
    """Opt out the sender, under all of their addresses.

    In a group one member does not speak for all: only the member is opted out, if the member is a recipient too. A
    member behind a hidden address waits until the address is known. A direct room reaches only one other person, so
    the room, which we write to, is opted out.
    """
    said_to, account = inbound.recipient, inbound.account
    if said_to is not None and (inbound.direct or said_to.kind in SPEAKS_FOR_ITSELF):
        people = [said_to, *recipients_of(account, said_to.address)]
    else:
        people = [who for who in recipients_of(account, inbound.sender) if who.kind in SPEAKS_FOR_ITSELF]
    for who in people:
        consent.opt_out(who, how=STOPPED)
    if inbound.answers and inbound.sender:
        # They may have written from another address of theirs: nothing may go there either.
        consent.suppress(inbound.account.owner_id, inbound.account.channel, inbound.sender, how=STOPPED)
    unknown = not people and aliases.is_unknown(account, inbound.sender)
    inbound.waits_for = inbound.sender if unknown else ""
    inbound.save(update_fields=["waits_for"])
