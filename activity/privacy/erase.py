"""Erases everything about one person. Counts stay, and a keyed hash of the address, so that it stays opted out.

1. Lock the recipient, and refuse while a message to them is on its way or an import with them is at work.
2. Opt them out. From then on the engine leaves them out of every run, also in the middle of one.
3. Delete what they wrote, follow-ups, aliases, ties to tags and reminders, and what was typed about them.
4. Empty what has to stay for counts and limits: targets, ledger rows, runs and items of one message to them.
5. Delete what repeats it elsewhere: notifications and webhook events that name them, rows and files of imports, and
   uploaded files of queues. What lies above this module deletes its own rows when it hears `erased`.
6. Put the hash in the place of the address, and record it.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, cast

from django.contrib.admin.models import LogEntry
from django.core.files.storage import default_storage
from django.db import transaction
from django.db.models import Q, QuerySet, TextField
from django.db.models.functions import Cast
from django.dispatch import Signal
from django.utils import timezone

from accounts.imports.stages import WORKING
from accounts.models import (
    AddressAlias,
    ConsentChange,
    Contact,
    Delivery,
    Import,
    ImportRow,
    Recipient,
    Role,
    User,
)
from accounts.recipients.erased import mark_of
from accounts.roles import require_touch
from activity.models import Attempt, Inbound, Notification
from audit import retention
from audit.record import record
from delivery.models import Run, RunTarget, TargetContent
from delivery.states import IllegalMoveError, TargetStatus
from queues.models import Item, QueueImport
from reminders.models import FollowUp, Reminder

QUEUE_WORKING = (QueueImport.Status.CHECKING, QueueImport.Status.SAVING)
NAME = "Erased recipient"
WORDS = "erased on request"
SHORTEST_NAME = 4  # letters; shorter names are parts of other words
# Sent inside the transaction, with the recipient as it was. Each receiver returns a kind of rows and their number.
erased = Signal()


class NotErasableError(IllegalMoveError):
    """The person cannot be erased now. The text says why, and what to do."""


@transaction.atomic
def erase(recipient: Recipient, *, by: User | None = None) -> dict[str, int]:
    """Erase a recipient; return how many rows of each kind were deleted or emptied. Raise NotErasableError."""
    if by is not None:
        require_touch(recipient, by, Role.MANAGE)
    recipient = Recipient.objects.select_for_update(no_key=True).get(pk=recipient.pk)
    if why := why_not(recipient):
        raise NotErasableError(why)
    counts = dict(_erased(recipient))
    _replace(recipient, by)
    record("recipient.erased", recipient, by=by, after=counts)
    return counts


def why_not(recipient: Recipient) -> str:
    """Return why a recipient cannot be erased now; empty if they can."""
    if recipient.erased_at is not None:
        return "This recipient is erased already."
    if RunTarget.objects.filter(
        recipient=recipient, status=TargetStatus.SENDING, begun_at__isnull=False
    ).exists():
        return "A message to this recipient is on its way. Try again in a minute."
    if Import.objects.filter(status__in=WORKING, pk__in=_import_rows(recipient).values("job")).exists():
        return "An import with this recipient is in progress. Wait until it has finished."
    if _queue_imports(recipient).filter(status__in=QUEUE_WORKING).exists():
        return "A file of items is being checked or saved. Wait until that has finished."
    return ""


def _erased(recipient: Recipient) -> Iterator[tuple[str, int]]:
    targets = list(RunTarget.objects.filter(recipient=recipient).values_list("pk", flat=True))
    aliases = AddressAlias.objects.filter(account__owner=recipient.owner_id, address=recipient.address)
    addresses = {recipient.address, *aliases.values_list("alias", flat=True)}
    yield "replies and reports", _inbound(recipient, addresses, targets).delete()[0]
    yield "aliases", aliases.delete()[0]
    yield "follow-ups", FollowUp.objects.filter(recipient=recipient).delete()[0]
    yield "contacts", Contact.objects.filter(recipient=recipient).delete()[0]
    Recipient.tags.through.objects.filter(recipient=recipient).delete()
    Reminder.recipients.through.objects.filter(recipient=recipient).delete()
    yield (
        "messages",
        RunTarget.objects.filter(pk__in=targets).update(
            provider_id="", earlier_ids=None, continues=None, error="", return_reason=""
        ),
    )
    yield "attempts", Attempt.objects.filter(target__in=targets).update(provider_id="", error="")
    yield "single messages", _single_messages(recipient, targets)
    yield (
        "notifications",
        naming(_notifications(recipient), ("title", "body"), recipient).delete()[0],
    )
    events = Delivery.objects.filter(webhook__owner=recipient.owner_id)
    yield (
        "webhook events",
        naming(events.annotate(said=Cast("payload", TextField())), ("said",), recipient).delete()[0],
    )
    yield "rows of imports", _imports(recipient)
    yield "files of queues", _queue_files(recipient)
    for _, told in erased.send(sender=Recipient, recipient=recipient):
        yield cast("tuple[str, int]", told)
    LogEntry.objects.filter(content_type__model="recipient", object_id=str(recipient.pk)).delete()
    yield "values in the audit log", retention.forget_recipient(recipient.pk)


def _inbound(recipient: Recipient, addresses: set[str], targets: list[int]) -> QuerySet[Inbound]:
    theirs = Q(recipient=recipient) | Q(target__in=targets)
    theirs |= Q(account__owner=recipient.owner_id, account__channel=recipient.channel) & (
        Q(sender__in=addresses) | Q(chat__in=addresses, direct=True)
    )
    return Inbound.objects.filter(theirs)


def _single_messages(recipient: Recipient, targets: list[int]) -> int:
    """Empty the runs and the contents that were for this person alone."""
    empty = [{"kind": "text", "text": WORDS}]
    runs = Run.objects.filter(kind=Run.Kind.MESSAGE, targets__in=targets)
    count = runs.update(name=f"Message to an {NAME.lower()}", subject="", parts=empty) if targets else 0
    TargetContent.objects.filter(target__in=targets, parts__isnull=False).update(
        subject="", parts=empty, values={}
    )
    TargetContent.objects.filter(target__in=targets, parts__isnull=True).update(subject="", values={})
    for item in Item.objects.filter(recipient=recipient):
        item.own_id, item.given, item.late_change = f"erased-{item.pk}", "", ""
        item.save(update_fields=["own_id", "given", "late_change"])
    return count


def _notifications(recipient: Recipient) -> QuerySet[Notification]:
    """Return the owner's notifications, and the copies that team members got of them, also those who left since."""
    copies = Q(key__startswith=f"team:{recipient.owner_id}:")
    return Notification.objects.filter(Q(owner=recipient.owner_id) | copies)


def naming(rows: "QuerySet[Any]", columns: Sequence[str], recipient: Recipient) -> "QuerySet[Any]":
    """Return those of the rows that have the recipient's address or name in one of the columns."""
    named, words = Q(), [recipient.address]
    if len(recipient.name) >= SHORTEST_NAME:
        words.append(recipient.name)
    for column, word in product(columns, words):
        named |= Q(**{f"{column}__icontains": word})
    return rows.filter(named)


def _import_rows(recipient: Recipient) -> QuerySet[ImportRow]:
    rows = ImportRow.objects.filter(job__owner=recipient.owner_id, job__channel=recipient.channel)
    return rows.filter(Q(address=recipient.address) | Q(saved_as=recipient.pk))


def _imports(recipient: Recipient) -> int:
    """Delete their rows of imports, and the files, which have the same rows once more."""
    jobs = list(Import.objects.filter(pk__in=_import_rows(recipient).values("job")).exclude(file=""))
    names = [job.file.name for job in jobs if job.file.name]
    transaction.on_commit(lambda: _delete_files(names))
    return _import_rows(recipient).delete()[0]


def _queue_imports(recipient: Recipient) -> QuerySet[QueueImport]:
    return QueueImport.objects.filter(queue__owner=recipient.owner_id)


def _queue_files(recipient: Recipient) -> int:
    """Delete the files of items that were uploaded and not saved: any of them may name the person in any row.

    Of those that were saved the file is gone already; their first and wrong rows are emptied.
    """
    saved = Q(status=QueueImport.Status.DONE)
    _queue_imports(recipient).filter(saved).update(first=[], problems=[])
    unsaved = _queue_imports(recipient).exclude(saved)
    names = [name for name in unsaved.values_list("file", flat=True) if name]
    transaction.on_commit(lambda: _delete_files(names))
    return unsaved.delete()[0]


def _delete_files(names: list[str]) -> None:
    for name in names:
        default_storage.delete(name)


def _replace(recipient: Recipient, by: User | None) -> None:
    """Leave nothing of the recipient but the hash, the opt-out and the times of changes of consent."""
    now = timezone.now()
    ConsentChange.objects.filter(recipient=recipient).update(how=WORDS)
    ConsentChange.objects.create(recipient=recipient, move=ConsentChange.Move.OUT, at=now, how=WORDS, by=by)
    Recipient.objects.filter(pk=recipient.pk).update(
        address=_free_mark(recipient),
        name=NAME,
        fields={},
        account=None,
        problem="",
        undeliverable_for="",
        undeliverable_source="",
        last_inbound_at=None,
        opted_out_at=recipient.opted_out_at or now,
        archived_at=recipient.archived_at or now,
        erased_at=now,
    )


def _free_mark(recipient: Recipient) -> str:
    """Return the hash of the address; with the number of the recipient where the same address was erased before."""
    mark = mark_of(recipient.owner_id, recipient.channel, recipient.address)
    rows = Recipient.objects.filter(owner=recipient.owner_id, channel=recipient.channel, address=mark)
    return f"{mark}:{recipient.pk}" if rows.exists() else mark
