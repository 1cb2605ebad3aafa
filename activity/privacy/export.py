"""Collects everything about one person, as one document that a program and a person can read."""

from collections.abc import Iterator, Mapping
from typing import Any

from django.utils import timezone

from accounts.models import AddressAlias, Recipient
from activity.models import Attempt, Inbound
from audit.models import Entry
from audit.record import record
from delivery.models import RunTarget, TargetContent
from queues.models import Item
from reminders.models import FollowUp, Reminder

MOST = 10_000  # rows of each kind

OWN = (
    *("id", "channel", "kind", "address", "name", "fields", "opted_out_at", "blocked_at", "undeliverable_at"),
    *("undeliverable_for", "undeliverable_source", "converted_at", "not_interested_at", "cooldown_until"),
    *("last_inbound_at", "created_at", "archived_at", "erased_at"),
)
TARGET = (
    *(
        "run",
        "run__name",
        "run__subject",
        "run__parts",
        "account__name",
        "status",
        "settled_at",
        "delivered_at",
    ),
    *("read_at", "returned_at", "return_reason", "error"),
)


def export(recipient: Recipient, *, by: Any = None) -> dict[str, Any]:
    """Return everything about a recipient, and record that it was asked for."""
    record("recipient.exported", recipient, by=by)
    return {"exported_at": timezone.now(), **dict(_sections(recipient))}


def _sections(recipient: Recipient) -> Iterator[tuple[str, Any]]:
    targets = RunTarget.objects.filter(recipient=recipient)
    yield "recipient", {name: getattr(recipient, name) for name in OWN}
    yield "reached_by", str(recipient.account or "")
    yield "tags", list(recipient.tags.values_list("name", flat=True))
    aliases = AddressAlias.objects.filter(account__owner=recipient.owner_id, address=recipient.address)
    yield "other_addresses", sorted(set(aliases.values_list("alias", flat=True)))
    changes = recipient.consent_changes.order_by("at", "id")
    yield "changes_of_consent", list(changes.values("move", "at", "how", "by__username")[:MOST])
    yield (
        "reminders_that_name_them",
        list(Reminder.objects.filter(recipients=recipient).values("id", "name")[:MOST]),
    )
    yield "messages", list(targets.order_by("id").values(*TARGET)[:MOST])
    contents = TargetContent.objects.filter(target__in=targets)
    yield "texts_for_them_alone", list(contents.values("target__run", "subject", "parts", "values")[:MOST])
    attempts = Attempt.objects.filter(target__in=targets).order_by("at")
    yield "attempts", list(attempts.values("at", "action", "outcome", "error", "account__name")[:MOST])
    replies = Inbound.objects.filter(recipient=recipient).order_by("at")
    yield (
        "what_they_sent",
        list(replies.values("at", "kind", "sender", "subject", "text", "account__name")[:MOST]),
    )
    queued = FollowUp.objects.filter(recipient=recipient).order_by("id")
    yield "follow_ups", list(queued.values("status", "due_at", "ended_at")[:MOST])
    items = Item.objects.filter(recipient=recipient).order_by("id")
    yield (
        "items",
        list(items.values("queue__name", "own_id", "planned_at", "added_at", "withdrawn_at")[:MOST]),
    )
    yield "audit_log", [_entry(entry) for entry in _entries(recipient)]


def _entries(recipient: Recipient) -> list[Entry]:
    rows = Entry.objects.filter(thing_type="recipient", thing_id=recipient.pk)
    return list(rows.select_related("personal").order_by("id")[:MOST])


def _entry(entry: Entry) -> Mapping[str, Any]:
    kept = getattr(entry, "personal", None)
    return {
        "at": entry.at,
        "who": entry.actor_name,
        "what": entry.words,
        "before": kept.before if kept else None,
        "after": kept.after if kept else None,
        "note": kept.note if kept else "",
    }
