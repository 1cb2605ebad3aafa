"""Reads the table of a source, portion by portion, and makes items of its rows.

1. A read begins when it is due and nothing else is read; it remembers behind each portion where it is, so that a
   worker that dies, or is told to wait, loses nothing.
2. Each row becomes an entry of the queue, or has a problem that is told in the row. Only rows that changed are given
   to the queue; the queue knows each by its own id, so that giving one twice makes nothing twice.
3. Only a read that came to the end of the table says which rows are missing. They are withdrawn when the next read
   does not find them either (`missing.py`).
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from zoneinfo import ZoneInfo

from django.db import transaction
from django.utils import timezone

from activity.storable import storable
from config import many_rows
from queues import actions
from queues.actions import Result, Took
from queues.entries import Entry, EntryError
from queues.models import Source, SourceRead, SourceRow
from queues.sources import mapping, missing
from queues.sources.mapping import TIMES, Columns
from queues.sources.opening import columns, repeated_titles, zone_of
from queues.sources.tables import Known, Portion, Schema, Table, TableRow
from queues.sources.troubles import LostPlaceError, StoppedError

READS_KEPT = 100
MOST_REPAIRS = 3
LONGEST_PROBLEM = 500
LONGEST_CELL = 200_000  # more than an item takes: what is longer is refused with a reason
EMPTIED = "The row was emptied. The item stays as it was; delete the row to withdraw it."
OVER = "Its message ended long ago, and its details were removed. Add a new row to send another one."
# Counted in each read, in the words of its page.
COUNTED = ("rows", "added", "changed", "begun", "wrong", "not_ready", "withdrawn", "missing")


@dataclass(slots=True, kw_only=True)
class Reading:
    """One slice of a read: its source, its table as it is now, and what is counted."""

    source: Source
    table: Table
    read: SourceRead
    columns: Columns
    schema: Schema
    known: Known | None
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def zone(self) -> str:
        return zone_of(self.source, self.schema)


@dataclass(kw_only=True)
class Seen:
    """A row of a portion: the entry that it is, or its problem, and our row of it."""

    row: TableRow
    own_id: str = ""
    entry: Entry | None = None
    problem: str = ""
    ready: bool = True
    kept: SourceRow | None = None

    @cached_property
    def mark(self) -> str:
        """Return the fingerprint of the entry."""
        return self.entry.fingerprint() if self.entry is not None else ""


def begin(source: Source, table: Table) -> Reading:
    """Return the read that is in progress, or a new one; raise StoppedError where a column is gone."""
    schema = table.schema()
    chosen = columns(source)
    if why := mapping.gone(chosen, schema, repeated=repeated_titles(table)):
        raise StoppedError(why)
    known = table.known()
    read, _ = SourceRead.objects.get_or_create(
        source=source, outcome=SourceRead.Outcome.READING, defaults={"started_at": timezone.now()}
    )
    return Reading(
        source=source,
        table=table,
        read=read,
        columns=chosen,
        schema=schema,
        known=known,
        counts=Counter(read.counts),
    )


def step(reading: Reading) -> bool:
    """Read and take the next portion; return whether more follow."""
    try:
        portion = reading.table.portion(reading.read.cursor, reading.columns.all)
    except LostPlaceError:
        reading.read.cursor = {}
        reading.counts.clear()
        _save(reading)
        return True
    _take(reading, portion)
    if portion.cursor is not None:
        reading.read.cursor = portion.cursor
        _save(reading)
        return True
    missing.settle(reading.source, reading.read, reading.table.known(), reading.counts)
    end(reading)
    return False


def end(reading: Reading) -> None:
    """Write down that the table was read to its end, and when it is read again."""
    now, source = timezone.now(), reading.source
    read = reading.read
    read.ended_at, read.outcome, read.cursor = now, SourceRead.Outcome.DONE, {}
    read.counts = dict(reading.counts)
    read.save(update_fields=["ended_at", "outcome", "cursor", "counts"])
    again = timedelta(minutes=source.every_minutes)
    if missing.to_confirm(source):
        again = min(again, missing.CONFIRMED_AFTER)
    asked = Source.objects.filter(pk=source.pk).values_list("next_read_at", flat=True).first()
    if asked is not None and asked > read.started_at:
        again = timedelta()  # somebody wanted it read, or chose other columns, while it was being read
    Source.objects.filter(pk=source.pk).update(
        next_read_at=now + again, failing_since=None, failures=0, trouble="", title=_title(reading)
    )
    old = SourceRead.objects.filter(source=source).order_by("-id").values_list("pk", flat=True)
    if over := list(old[READS_KEPT : READS_KEPT + 100]):
        SourceRead.objects.filter(pk__in=over).delete()


def fail(source: Source, why: str) -> None:
    """End the read in progress, if there is one, without its having seen the whole table: nothing follows from it."""
    SourceRead.objects.filter(source=source, outcome=SourceRead.Outcome.READING).update(
        outcome=SourceRead.Outcome.FAILED, ended_at=timezone.now(), why=why[:500], cursor={}
    )


def _save(reading: Reading) -> None:
    reading.read.counts = dict(reading.counts)
    reading.read.save(update_fields=["cursor", "counts"])


def _title(reading: Reading) -> str:
    return (reading.schema.title or reading.source.title)[:200]


def _take(reading: Reading, portion: Portion) -> None:
    """Make items of the rows of a portion, and remember how each row is now."""
    seen = [_seen(reading, _storable(row)) for row in portion.rows]
    named = [each for each in seen if each.own_id]
    kept = SourceRow.objects.filter(source=reading.source, own_id__in=[each.own_id for each in named])
    by_id = {row.own_id: row for row in kept}
    places: dict[str, str] = {}
    for each in named:
        each.kept = by_id.get(each.own_id)
        _refuse_repeated(reading, each, places)
        _refuse_lost(each)
    _put(reading, [each for each in seen if each.own_id and each.ready])
    _withdraw_unready(reading, [each for each in seen if each.own_id and not each.ready])
    with transaction.atomic():
        _remember(reading, seen)
    reading.counts["rows"] += sum(1 for each in seen if not _is_nothing(each))
    reading.counts["wrong"] += sum(1 for each in seen if each.problem)
    reading.counts["not_ready"] += sum(1 for each in seen if each.own_id and not each.ready)


def _storable(row: TableRow) -> TableRow:
    """Return the row without what the database refuses: a service may send half a character."""
    if all(cell.text.isascii() and "\0" not in cell.text for cell in row.cells.values()):
        return row
    cells = {key: replace(cell, text=storable(cell.text, LONGEST_CELL)) for key, cell in row.cells.items()}
    return replace(row, cells=cells)


def _is_nothing(each: Seen) -> bool:
    return not each.own_id and not each.problem


def _seen(reading: Reading, row: TableRow) -> Seen:
    chosen = reading.columns
    if mapping.is_blank(row, chosen):
        return _blank(row, chosen)
    try:
        own_id = mapping.own_id_in(row, chosen)
    except EntryError as error:
        return Seen(row=row, problem=str(error))
    if not mapping.is_ready(row, chosen):
        return Seen(row=row, own_id=own_id, ready=False)
    try:
        entry = mapping.entry_of(row, chosen, own_id=own_id, zone=reading.zone)
    except EntryError as error:
        return Seen(row=row, own_id=own_id, problem=str(error))
    return Seen(row=row, own_id=own_id, entry=entry)


def _blank(row: TableRow, chosen: Columns) -> Seen:
    """Return a row in which nothing was written: it is there, and says nothing."""
    try:
        return Seen(row=row, own_id=mapping.own_id_in(row, chosen))
    except EntryError:
        return Seen(row=row)


def _refuse_repeated(reading: Reading, each: Seen, places: dict[str, str]) -> None:
    """Refuse a row whose own id is that of another one: which of them is meant, only a person knows."""
    own_id, place = each.own_id, each.row.place
    first = places.setdefault(own_id, place) == place
    if reading.known is not None:
        if first and own_id not in reading.known.repeated:
            return
    elif first and not _seen_elsewhere(reading, each):
        return
    each.own_id, each.entry, each.kept = "", None, None
    each.problem = f"Several rows have the id “{own_id}”. Give each its own."


def _refuse_lost(each: Seen) -> None:
    """Refuse rows that were emptied, and rows whose item was removed: what they say now may have been sent."""
    kept = each.kept
    if kept is None or each.problem or not each.ready:
        return
    if each.entry is None and kept.item_id is not None:
        each.problem = EMPTIED
    elif each.entry is not None and kept.digest and kept.item_id is None:
        changed = kept.digest != each.mark
        each.entry, each.problem = None, OVER if changed else ""


def _seen_elsewhere(reading: Reading, each: Seen) -> bool:
    kept = each.kept
    return kept is not None and kept.seen_in == reading.read.pk and kept.place != each.row.place


def _put(reading: Reading, rows: Sequence[Seen]) -> None:
    """Give entries that are new or changed to the queue."""
    entries = [each for each in rows if each.entry is not None and _is_news(each)]
    if not entries:
        return
    results = actions.put(
        reading.source.queue,
        [each.entry for each in entries if each.entry is not None],
        source=reading.source.key,
        by=None,
    )
    for each, result in zip(entries, results, strict=True):
        _note(reading, each, result)


def _is_news(each: Seen) -> bool:
    """Decide whether the queue has to look at a row: it changed, or was not taken the last time."""
    kept, entry = each.kept, each.entry
    if (
        kept is None
        or entry is None
        or kept.item_id is None
        or kept.problem
        or kept.missing_since is not None
    ):
        return True
    return kept.digest != each.mark


def _note(reading: Reading, each: Seen, result: Result) -> None:
    if each.kept is None:
        each.kept = SourceRow(source=reading.source, own_id=each.own_id)
    if result.item_id is not None:
        each.kept.item_id = result.item_id
    match result.took:
        case Took.REFUSED:
            stays = " The item stays as it was." if each.kept.item_id is not None else ""
            each.problem = f"{result.why}{stays}"
        case Took.ADDED | Took.CHANGED | Took.BEGUN:
            reading.counts[str(result.took)] += 1
        case Took.UNCHANGED | Took.WITHDRAWN:
            pass


def _withdraw_unready(reading: Reading, rows: Sequence[Seen]) -> None:
    """Withdraw items whose row says that it is not ready any more; those that have begun stay."""
    taken = [each.own_id for each in rows if each.kept is not None and each.kept.item_id and each.kept.digest]
    if taken:
        source = reading.source
        done = actions.withdraw(source.queue, by=None, source=source.key, own_ids=taken, by_source=True)
        reading.counts["withdrawn"] += done.done


def _remember(reading: Reading, seen: Sequence[Seen]) -> None:
    """Write down how each row is now; rows that are as they were are not written again."""
    new: list[SourceRow] = []
    changed: list[SourceRow] = []
    for each in seen:
        if each.own_id:
            row = each.kept or SourceRow(source=reading.source, own_id=each.own_id)
            if _update(reading, row, each):
                (new if row._state.adding else changed).append(row)
    many_rows.insert(new, key="own_id")
    many_rows.update(
        changed,
        ["place", "item", "digest", "seen_in", "missing_since", "problem", "shown", "due", "repairs"],
    )
    _remember_without_id(reading, [each for each in seen if not each.own_id and each.problem])


def _update(reading: Reading, row: SourceRow, each: Seen) -> bool:
    """Bring our row up to date; return whether it has to be saved."""
    before = (row.place, row.item_id, row.digest, row.missing_since, row.problem, row.due, dict(row.shown))
    old_seen = row.seen_in
    row.place, row.missing_since = each.row.place, None
    if not each.ready:
        row.digest = ""
    elif each.entry is not None and not each.problem:
        row.digest = each.mark
    problem = each.problem[:LONGEST_PROBLEM]
    if problem != row.problem:
        row.problem, row.due = problem, True
    _compare(row, shown_in(each.row, reading.columns, reading.zone))
    # A table that names all own ids at once needs no note in every row that it was seen.
    row.seen_in = reading.read.pk if reading.known is None or row._state.adding else old_seen
    after = (row.place, row.item_id, row.digest, row.missing_since, row.problem, row.due, dict(row.shown))
    return row._state.adding or before != after or old_seen != row.seen_in


def _compare(row: SourceRow, shown: Mapping[str, str]) -> None:
    """Notice written cells that somebody changed: they are written again, a few times."""
    if row._state.adding:
        row.shown, row.due = dict(shown), row.item_id is not None or bool(row.problem)
    elif dict(row.shown) == shown:
        row.repairs = 0
    else:
        row.shown = dict(shown)
        if row.repairs < MOST_REPAIRS:
            row.due, row.repairs = True, row.repairs + 1


def _remember_without_id(reading: Reading, rows: Sequence[Seen]) -> None:
    """Keep rows that cannot be named by their place, until a read finds them right."""
    places = [each.row.place for each in rows]
    kept = SourceRow.objects.filter(source=reading.source, own_id="", place__in=places)
    by_place = {row.place: row for row in kept}
    new: list[SourceRow] = []
    changed: list[SourceRow] = []
    for each in rows:
        row = by_place.get(each.row.place) or SourceRow(source=reading.source, place=each.row.place)
        if row.problem != each.problem:
            row.problem, row.due = each.problem[:LONGEST_PROBLEM], True
        _compare(row, shown_in(each.row, reading.columns, reading.zone))
        row.seen_in = reading.read.pk
        (new if row._state.adding else changed).append(row)
    many_rows.insert(new, key="place")
    many_rows.update(changed, ["problem", "due", "seen_in", "shown", "repairs"])


def shown_in(row: TableRow, chosen: Columns, zone: str) -> dict[str, str]:
    """Return what the written cells of a row show; times in one form, whatever form they were written in."""
    found = {}
    for tells, key in chosen.tells.items():
        text = row.cells[key].text.strip() if key in row.cells else ""
        if text:
            found[str(tells)] = one_form(text, zone) if tells in TIMES else text
    return found


def one_form(text: str, zone: str) -> str:
    """Return a time as a minute of UTC; what is no time as it is."""
    try:
        found = datetime.fromisoformat(text)
        found = found if found.tzinfo is not None else found.replace(tzinfo=ZoneInfo(zone))
    except ValueError:
        return text
    return found.astimezone(UTC).strftime("%Y-%m-%dT%H:%MZ")


def slices(names: Collection[str], size: int) -> Iterator[list[str]]:
    listed = list(names)
    for start in range(0, len(listed), size):
        yield listed[start : start + size]
