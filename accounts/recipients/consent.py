"""Changes of consent: opt out and in, block, convert. Each is explicit, recorded and safe to repeat (SPEC C6).

A change applies before the next message leaves, even in the middle of a run: right before each message the engine
reads the recipient again (`begin` in `delivery/engine/recording.py`) and skips people who opted out or are blocked.
"""

from typing import Literal

from django.db import transaction
from django.utils import timezone

from accounts.addresses import BadAddressError, canonical
from accounts.models import ConsentChange, Recipient, Role, User
from accounts.models.webhook import EventType
from accounts.outbox import Event, emit
from accounts.roles import require_touch
from activity import counters
from audit.record import record

Mark = Literal["opted_out_at", "blocked_at", "converted_at"]
Move = ConsentChange.Move
RECORDED = {
    Move.OUT: "recipient.out",
    Move.IN: "recipient.in",
    Move.BLOCKED: "recipient.blocked",
    Move.UNBLOCKED: "recipient.unblocked",
    Move.CONVERTED: "recipient.converted",
    Move.REOPENED: "recipient.reopened",
}


def opt_out(recipient: Recipient, *, how: str, by: User | None = None) -> bool:
    """Send nothing more to the recipient. `how` is the reason; `by` is the person who entered it.

    Return whether anything changed: a second opt-out keeps the time and the record of the first.
    """
    return _change(recipient, "opted_out_at", Move.OUT, on=True, how=how, by=by)


def suppress(owner_id: int, channel: str, address: str, *, how: str) -> Recipient | None:
    """Send nothing more to an address, also if no recipient has it.

    In that case a recipient is added, archived and opted out. There is one recipient per owner, channel and address,
    and a recipient who ever opted out is never deleted, so an address that is added later is found opted out. Return
    the recipient, or None if the address or its owner does not exist: nothing can be sent there.
    """
    try:
        found = canonical(channel, address)
    except (BadAddressError, KeyError):
        return None
    if not User.objects.filter(pk=owner_id).exists():
        return None
    with transaction.atomic():
        recipient, _ = Recipient.objects.get_or_create(
            owner_id=owner_id,
            channel=channel,
            address=found.text,
            defaults={"kind": found.kind, "archived_at": timezone.now()},
        )
        opt_out(recipient, how=how)
    return recipient


def opt_in(recipient: Recipient, *, how: str, by: User | None) -> bool:
    """Send to the recipient again. Only at their explicit request, which `how` must state."""
    return _change(recipient, "opted_out_at", Move.IN, on=False, how=how, by=by)


def block(recipient: Recipient, *, how: str, by: User | None = None) -> bool:
    """Send nothing more to the recipient, because the operator or the service does not want it."""
    return _change(recipient, "blocked_at", Move.BLOCKED, on=True, how=how, by=by)


def unblock(recipient: Recipient, *, how: str, by: User | None) -> bool:
    return _change(recipient, "blocked_at", Move.UNBLOCKED, on=False, how=how, by=by)


def convert(recipient: Recipient, *, how: str, by: User | None = None) -> bool:
    """Record that the recipient did what was asked: no more follow-ups. Reminders are still sent."""
    return _change(recipient, "converted_at", Move.CONVERTED, on=True, how=how, by=by)


def reopen(recipient: Recipient, *, how: str, by: User | None) -> bool:
    """Undo `convert`: the recipient gets follow-ups again."""
    return _change(recipient, "converted_at", Move.REOPENED, on=False, how=how, by=by)


def _change(recipient: Recipient, mark: Mark, move: Move, *, on: bool, how: str, by: User | None) -> bool:
    """Set or clear the mark once, and record the reason. Return whether anything changed."""
    how = " ".join(how.split())[:200]
    if not how:
        raise ValueError("A change of consent needs a reason.")
    if by is not None:
        require_touch(recipient, by, Role.WRITE if on else Role.SEND)
    now = timezone.now()
    with transaction.atomic():
        marked = Recipient.objects.filter(pk=recipient.pk, **{f"{mark}__isnull": on})
        changed = marked.update(**{mark: now if on else None}) == 1
        if changed:
            ConsentChange.objects.create(recipient=recipient, move=move, at=now, how=how, by=by)
            record(RECORDED[move], recipient, by=by, note=how)
            _tell_webhooks(recipient, move, how)
    if changed:
        setattr(recipient, mark, now if on else None)
        counters.tell("consent_changes", reason=move.value, recipient=recipient.pk, by=by and by.pk)
    else:
        recipient.refresh_from_db(fields=[mark])
    return changed


def _tell_webhooks(recipient: Recipient, move: Move, how: str) -> None:
    told = {Move.OUT: EventType.OPTED_OUT, Move.IN: EventType.OPTED_IN}.get(move)
    if told is None:
        return
    data = {"id": recipient.pk, "channel": recipient.channel, "address": recipient.address, "how": how}
    sequence = f"recipient:{recipient.pk}"
    emit(Event(owner_id=recipient.owner_id, type=told, data={"recipient": data}, sequence=sequence))
