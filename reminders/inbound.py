"""What somebody's message means: the one place where replies begin (SPEC C2, C3, C6).

1. Find the recipient's last message, which this answers.
2. Under the recipient's lock: note when they spoke, forget attempts, cooldown and "not interested", and take back
   the follow-ups that wait or are on their way.
3. If it is a stop word: opt them out, and that is all.
4. Else send the second message, where the reminder has one and it is time for it.

All of it may be done again without harm: a message that is told twice, or two at once, change nothing more.
"""

from datetime import datetime

from django.conf import settings
from django.utils import timezone

from accounts import consent
from accounts.models import Recipient
from activity import counters
from activity.models import Inbound
from delivery import queues
from delivery.inbound import intake
from delivery.inbound.handling import recipient_of
from delivery.states import TargetStatus
from reminders import second_message
from reminders.follow_ups.replies import reply_came
from reminders.leaving import answered_by
from reminders.stop_words import is_stop

STOPPED = "replied STOP"
LOOK_AGAIN_SECONDS = 2
SPEAKS_FOR_ITSELF = {Recipient.Kind.PERSON, Recipient.Kind.MAILBOX, Recipient.Kind.PROFILE}


def handle(inbound: Inbound) -> None:
    """Take up one message. The row is locked, its recipient found if there is one, and this runs once for it.

    All that is changed here is committed with `handled_at`, or not at all; an exception leaves the message to be
    tried again by the next sweep, for a day.
    """
    if inbound.recipient_id is None:
        _tell(inbound, "not a recipient")
    elif not _take_up(inbound, inbound.recipient_id):
        return
    inbound.handled_at = timezone.now()
    inbound.save(update_fields=["handled_at"])


def _take_up(inbound: Inbound, recipient_id: int) -> bool:
    """Do all that the message asks for; False where it came so fast that its own message has not landed yet."""
    recipient = Recipient.objects.select_for_update(no_key=True).get(pk=recipient_id)
    said_at = min(inbound.at, inbound.created_at)
    inbound.target = answered_by(recipient, said_at)
    inbound.run_id = inbound.target.run_id if inbound.target else None
    inbound.save(update_fields=["target", "run"])
    _forgive(recipient, said_at)
    reply_came(recipient)
    if is_stop(inbound.text, settings.STOP_WORDS):
        _stop(inbound, recipient)
        _tell(inbound, "stop")
        return True
    if first := second_message.on_its_way(recipient):
        if first.status == TargetStatus.SENDING:  # else it takes longer, and the sweep looks often enough
            queues.send_on_commit(intake.WORK, inbound.account_id, countdown=LOOK_AGAIN_SECONDS)
        return False
    answered = second_message.answer(recipient, said_at=said_at)
    _tell(inbound, "second message" if answered else "reply")
    return True


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


def _stop(inbound: Inbound, recipient: Recipient) -> None:
    """In a group one member does not speak for all: they opt out themselves, if they are a recipient too."""
    who: Recipient | None = recipient
    if recipient.kind not in SPEAKS_FOR_ITSELF:
        who = recipient_of(inbound.account, inbound.sender)
    if who is not None and who.kind in SPEAKS_FOR_ITSELF:
        consent.opt_out(who, how=STOPPED)
