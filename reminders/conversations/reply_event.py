"""Tells webhooks of a reply, in the transaction that handles it."""

from accounts.models.webhook import EventType
from accounts.outbox import Event, emit
from activity.models import Inbound


def reply_received(inbound: Inbound) -> None:
    """Tell the account's owner's webhooks of a message that somebody sent to the account."""
    data = {
        "id": inbound.pk,
        "account": inbound.account_id,
        "recipient": inbound.recipient_id,
        "run": inbound.run_id,
        "target": inbound.target_id,
        "sender": inbound.sender,
        "subject": inbound.subject,
        "text": inbound.text,
        "at": inbound.at,
    }
    sequence = f"recipient:{inbound.recipient_id}" if inbound.recipient_id else ""
    emit(
        Event(
            owner_id=inbound.account.owner_id, type=EventType.REPLY, data={"reply": data}, sequence=sequence
        )
    )
