"""Writes back into the rows of a source what became of their items.

What a row should show is computed (`queues/telling.py`) and compared with what it was told; so whatever crashes,
the next look finds what is still to be written, and writes it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from django.db import transaction

from config import many_rows
from queues import telling
from queues.models import Source, SourceRow
from queues.sources.mapping import TIMES, Columns, Tells
from queues.sources.opening import columns
from queues.sources.reading import one_form
from queues.sources.tables import Change, Ended, Holds, Schema, Table, Value, Written
from queues.states import LABELS
from queues.telling import Told

AT_A_TIME: Mapping[str, int] = {Source.Kind.NOTION: 20, Source.Kind.SHEET: 5_000}
NOT_TAKEN = "Not taken"
WORDS = (*LABELS.values(), NOT_TAKEN)
LONGEST_REPLY, LONGEST_ERROR = 2_000, 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """A row to write: `told` is its item, if it has one, and `row` our row of it, if it is still there."""

    told: Told | None
    row: SourceRow | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """The end of one round of writing: whether more follows at once, and whether some rows have to wait."""

    written: int = 0
    more: bool = False
    later: bool = False
    last: int = 0  # the last item that was looked at, where more follow


def tell(source: Source, table: Table, schema: Schema, zone: str, *, after: int = 0) -> Round:
    """Write the next rows that show something else than they should, behind this item."""
    chosen, most = columns(source), AT_A_TIME[source.kind]
    if not chosen.tells:
        return Round()
    wishes = _wishes(source, most, after)
    _note([(wish, None) for wish in wishes if wish.row is None], zone, chosen)
    to_write = [wish for wish in wishes if wish.row is not None]
    ended: list[tuple[Wish, Written | None]] = []
    try:
        changes = [_change(wish, chosen, schema, zone) for wish in to_write]
        for wish, written in zip(to_write, table.write(changes) if changes else (), strict=True):
            ended.append((wish, written))
    finally:  # also where the service stops in between: what was written is known
        _note(ended, zone, chosen)
    later = any(written is not None and written.ended is Ended.LATER for _, written in ended)
    last = max((wish.told.item_id for wish in wishes if wish.told is not None), default=0)
    return Round(written=len(ended), more=len(wishes) >= most, later=later, last=last)


def _wishes(source: Source, most: int, after: int) -> list[Wish]:
    """Return rows whose item has news, then rows that show something else for another reason."""
    fresh = telling.to_tell(source.queue, source=source.key, limit=most, after=after)
    rows = SourceRow.objects.filter(source=source, own_id__in=[told.own_id for told in fresh])
    by_id = {row.own_id: row for row in rows}
    wishes = [Wish(told=told, row=by_id.get(told.own_id)) for told in fresh]
    chosen = {row.pk for row in by_id.values()}
    due = SourceRow.objects.filter(source=source, due=True).exclude(pk__in=chosen).order_by("id")
    others = list(due[: max(0, most - len(wishes))])
    items = telling.as_they_are([row.item_id for row in others if row.item_id is not None])
    return wishes + [Wish(told=items.get(row.item_id or 0), row=row) for row in others]


def _cells(wish: Wish) -> dict[Tells, Value]:
    """Return what each kind of column should show; None is an empty cell."""
    told, problem = wish.told, wish.row.problem if wish.row is not None else ""
    status = LABELS[told.state] if told is not None else NOT_TAKEN if problem else None
    return {
        Tells.STATUS: status,
        Tells.PLANNED_FOR: told.planned_for if told else None,
        Tells.SENT_AT: told.sent_at if told else None,
        Tells.ERROR: (problem or (told.why if told else ""))[:LONGEST_ERROR] or None,
        Tells.REPLIED_AT: told.replied_at if told else None,
        Tells.REPLY: (told.reply[:LONGEST_REPLY] if told else "").strip() or None,
    }


def _change(wish: Wish, chosen: Columns, schema: Schema, zone: str) -> Change:
    row = wish.row
    if row is None:
        raise ValueError("There is no row to write to.")
    cells = _cells(wish)
    found = {key: _value(cells[tells], schema, key, zone) for tells, key in chosen.tells.items()}
    return Change(own_id=row.own_id, place=row.place, cells=found)


def _value(value: Value, schema: Schema, key: str, zone: str) -> Value:
    """Return a value as the column takes it: a time in a column for text is written as people there read it."""
    column = schema.column(key)
    if not isinstance(value, datetime) or (column is not None and column.holds is Holds.DATE):
        return value
    return value.astimezone(ZoneInfo(zone)).strftime("%Y-%m-%d %H:%M")


def _note(ended: Sequence[tuple[Wish, Written | None]], zone: str, chosen: Columns) -> None:
    """Remember what the rows show now. A row that is gone has nobody left to tell."""
    done = [(wish, written) for wish, written in ended if written is None or written.ended is not Ended.LATER]
    if not done:
        return
    rows = []
    for wish, written in done:
        if wish.row is not None and written is not None:
            _update(wish, written, zone, chosen)
            rows.append(wish.row)
    with transaction.atomic():
        many_rows.update(rows, ["shown", "due", "unwritten", "repairs"])
        telling.told({wish.told.item_id: wish.told.mark for wish, _ in done if wish.told is not None})


def _update(wish: Wish, written: Written, zone: str, chosen: Columns) -> None:
    row = wish.row
    if row is None:
        return
    if not row.due:  # the item has news
        row.repairs = 0
    row.due = False
    row.unwritten = written.why[:500] if written.ended is Ended.REFUSED else ""
    if written.ended is Ended.WRITTEN:
        row.shown = _shown(_cells(wish), zone, chosen)


def _shown(cells: Mapping[Tells, Value], zone: str, chosen: Columns) -> dict[str, str]:
    """Return what the row shows now, in the form in which reading it finds it."""
    found = {}
    for tells in chosen.tells:
        value = cells[tells]
        text = value.isoformat() if isinstance(value, datetime) else (value or "").strip()
        if text:
            found[str(tells)] = one_form(text, zone) if tells in TIMES else text
    return found
