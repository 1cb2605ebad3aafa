"""Says what the row of each item in its source should say, for writing it back (SPEC Q3).

Nothing is noted when something happens. What a row should say is computed from the item as it is, and compared with
what the row was told last: so a crash between the two loses nothing, and at most writes the same again.
"""

import hashlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from django.db import transaction

from config import many_rows
from queues.models import Item, Queue
from queues.states import ItemState, with_state

if TYPE_CHECKING:
    from queues.models.item import ItemQuerySet

AT_A_TIME = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """The words for the row of one item; `mark` is their fingerprint."""

    item_id: int
    own_id: str
    state: ItemState
    planned_for: datetime | None
    sent_at: datetime | None
    why: str
    replied_at: datetime | None
    reply: str

    @property
    def mark(self) -> str:
        times = [
            at and at.astimezone(UTC).isoformat() for at in (self.planned_for, self.sent_at, self.replied_at)
        ]
        said = "\x1f".join([self.state, *(at or "" for at in times), self.why, self.reply])
        return hashlib.sha256(said.encode()).hexdigest()


def to_tell(queue: Queue, *, source: str, limit: int = 500, after: int = 0) -> list[Told]:
    """Return items of a source whose rows say something else than they should, behind this one, the oldest first."""
    found = []
    for each, last in _all(Item.objects.filter(queue=queue, source=source, pk__gt=after)):
        if each.mark != last:
            found.append(each)
            if len(found) == limit:
                break
    return found


@transaction.atomic
def told(marks: Mapping[int, str]) -> None:
    """Note by item what its row says now, once its service has taken it."""
    many_rows.update([Item(pk=pk, told=mark) for pk, mark in marks.items()], ["told"])


def as_they_are(item_ids: Collection[int]) -> dict[int, Told]:
    """Return what the rows of these items should say, whatever they were told."""
    return {told.item_id: told for told, _ in _all(Item.objects.filter(pk__in=item_ids))}


def _all(items: "ItemQuerySet") -> Iterator[tuple[Told, str]]:
    rows = with_state(items).order_by("pk")
    names = ("pk", "own_id", "state", "planned_for", "sent_at", "why", "replied_at", "reply", "told")
    for row in rows.values_list(*names).iterator(AT_A_TIME):
        pk, own_id, state, planned_for, sent_at, why, replied_at, reply, last = row
        yield (
            Told(
                item_id=pk,
                own_id=own_id,
                state=ItemState(state),
                planned_for=planned_for,
                sent_at=sent_at,
                why=why or "",
                replied_at=replied_at,
                reply=reply or "",
            ),
            last,
        )
