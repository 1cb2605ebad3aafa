"""Conversations between an account and its recipients, reported as services report them."""

from datetime import datetime
from itertools import count
from typing import Any

from django.utils import timezone

from accounts.models import Account
from activity.models import Inbound
from delivery.inbound import store
from delivery.models import RunTarget
from delivery.transports.base import Inbound as Said
from reminders.conversations import replies
from tests.factories import (
    AccountFactory,
    PartFactory,
    RecipientFactory,
    ReminderFactory,
    RunAccountFactory,
    RunFactory,
    RunTargetFactory,
)

NUMBERS = count()


def hear(
    account: Account,
    text: str,
    *,
    chat: str,
    sender: str = "",
    at: datetime | None = None,
    event: str = "",
    direct: bool = False,
) -> Inbound:
    """The service reports a message, and it is worked on."""
    event = event or f"message-{next(NUMBERS)}"
    said = Said(
        event_id=event,
        provider_id=event,
        sender=sender or chat,
        chat=chat,
        text=text,
        at=at or timezone.now(),
        direct=direct,
    )
    store.store(account, [said])
    replies.work(account.pk)
    return Inbound.objects.get(account=account, event_id=event)


def reply(target: RunTarget, text: str = "Thank you!", **said: Any) -> Inbound:
    return hear(target.account, text, chat=target.recipient.address, **said)


def sent(*, second: int = 1, at: datetime | None = None, **reminder: Any) -> RunTarget:
    """A first message that was sent to one person, of a reminder with so many parts for who replies."""
    values = {"window_start_hour": 0, "window_end_hour": 24} | reminder
    account = values.pop("account", None)
    made = ReminderFactory.create(**values, accounts=[account] if account else 1)
    for position in range(second):
        PartFactory.create(
            reminder=made, second=True, position=position, text=f"Second {position}, {{{{ name }}}}"
        )
    return sent_of(made, at=at, account=account)


def sent_of(
    reminder: Any, *, at: datetime | None = None, account: Account | None = None, **target: Any
) -> RunTarget:
    """A first message of a reminder that was sent, in a run of its own."""
    at = at or timezone.now()
    run = RunFactory.create(reminder=reminder, success=True, sent=1, fired_at=at, finished_at=at)
    account = account or AccountFactory.create(owner=reminder.owner)
    RunAccountFactory.create(run=run, account=account, open=False)
    recipient = target.pop("recipient", None) or RecipientFactory.create(owner=reminder.owner)
    return RunTargetFactory.create(
        run=run, account=account, recipient=recipient, sent=True, settled_at=at, **target
    )
