"""The history of a recipient: messages, replies, removed follow-ups and changes of consent, the newest first."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from accounts.models import Recipient

SHOWN = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One line of the history. `state` is shown as a pill; `run_id` is the run to link to."""

    at: datetime
    what: str  # message, reply, follow-up or consent
    state: str
    title: str
    text: str = ""
    by: str = ""
    zone: str = ""
    run_id: int | None = None


def history(recipient: Recipient, *, most: int = SHOWN) -> list[Event]:
    """Return the newest events of all kinds; `most` of each kind are read, so that no kind hides another."""
    kinds = (_messages, _replies, _dropped, _consent)
    events = [event for kind in kinds for event in kind(recipient, most)]
    return sorted(events, key=lambda event: event.at, reverse=True)[:most]


def _messages(recipient: Recipient, most: int) -> Iterator[Event]:
    targets = recipient.targets.select_related("run").defer("run__parts").order_by("-run_id")
    for target in targets[:most]:
        run = target.run
        yield Event(
            at=target.settled_at or target.not_before,
            what="message",
            state="returned" if target.returned_at and target.status == "sent" else target.status,
            title=run.name if run.kind == "reminder" else f"{run.get_kind_display()}: {run.name}",
            text=target.error or target.return_reason,
            zone=run.zone,
            run_id=run.pk,
        )


def _dropped(recipient: Recipient, most: int) -> Iterator[Event]:
    """Yield the follow-ups that were removed unsent, with the reason; the sent ones are among the messages."""
    found = recipient.follow_ups.filter(status="removed").select_related("target__run")
    for follow_up in found.defer("target__run__parts").order_by("-ended_at")[:most]:
        run = follow_up.target.run
        yield Event(
            at=follow_up.ended_at or follow_up.queued_at,
            what="follow-up",
            state="removed",
            title=f"Follow-up: {run.name}",
            text=follow_up.removed_reason,
            zone=run.zone,
            run_id=run.pk,
        )


def _replies(recipient: Recipient, most: int) -> Iterator[Event]:
    found = recipient.inbound.filter(kind="message").select_related("account").defer("account__credentials")
    for reply in found.order_by("-at")[:most]:
        yield Event(
            at=reply.at, what="reply", state="reply", title=f"Reply to {reply.account}", text=reply.text
        )


def _consent(recipient: Recipient, most: int) -> Iterator[Event]:
    for change in recipient.consent_changes.select_related("by").order_by("-at", "-id")[:most]:
        yield Event(
            at=change.at,
            what="consent",
            state=change.move,
            title=change.get_move_display(),
            text=change.how,
            by=str(change.by or ""),
        )
