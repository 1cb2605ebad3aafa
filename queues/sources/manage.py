"""Makes and changes sources: their access, their columns, how often they are read."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils import timezone

from accounts.models import Role, User
from accounts.roles import require_touch
from audit.record import differing, record, values_of
from delivery.sessions.calls import BusyError
from queues import actions
from queues.models import Item, Queue, Source, SourceRow
from queues.sources import mapping, missing, reading, writing
from queues.sources.mapping import Columns, MappingError, Means
from queues.sources.opening import needs_own_id, opened, repeated_titles
from queues.sources.tables import Schema
from queues.sources.troubles import TroubleError
from queues.states import ItemState, condition

MOST = 20  # sources of one owner


class BadSourceError(ValueError):
    """The source cannot be like this. The text says why, and `field` where."""

    def __init__(self, name: str, sentence: str) -> None:
        super().__init__(sentence)
        self.field = name


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The access to a table that a person gives: where it is, and with which secret."""

    kind: str
    address: str
    secret: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A table that the service shows us."""

    key: str
    title: str
    place: Mapping[str, Any]


def tables(access: Access) -> Sequence[Found]:
    """Ask the service which tables are there; raise BadSourceError with the field that is wrong."""
    found = _notion_tables(access) if access.kind == Source.Kind.NOTION else _sheets(access)
    if not found:
        raise BadSourceError("address", "There is no table. Add one there first.")
    return found


def _notion_tables(access: Access) -> list[Found]:
    from queues.sources import notion  # noqa: PLC0415 - the vendors' libraries are large

    try:
        database = notion.database_id(access.address)
    except ValueError as error:
        raise BadSourceError("address", str(error)) from error
    token = access.secret.strip()
    if not token.isascii() or not token.isprintable() or " " in token:
        raise BadSourceError("secret", "This is not a token of an integration.")
    try:
        found = notion.data_sources(token=token, database=database)
    except (TroubleError, BusyError) as error:
        raise BadSourceError("secret", str(error)) from error
    return [
        Found(
            key=f"notion:{each.id}",
            title=each.name or "Notion database",
            place={"database": database, "data_source": each.id},
        )
        for each in found
    ]


def _sheets(access: Access) -> list[Found]:
    from queues.sources import sheets  # noqa: PLC0415

    try:
        spreadsheet, tab = sheets.spreadsheet_id(access.address)
    except ValueError as error:
        raise BadSourceError("address", str(error)) from error
    try:
        account = sheets.account_of(access.secret)
        found = sheets.tabs(account=access.secret, spreadsheet=spreadsheet)
    except ValueError as error:
        raise BadSourceError("secret", str(error)) from error
    except (TroubleError, BusyError) as error:
        raise BadSourceError("address", str(error).replace("the account", account)) from error
    named = [each for each in found if tab is None or each.id == tab] or found
    return [
        Found(
            key=f"sheet:{_short(f'{spreadsheet}:{each.id}')}",
            title=each.title,
            place={"spreadsheet": spreadsheet, "tab": each.id},
        )
        for each in named
    ]


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:40]


def make(queue: Queue, access: Access, found: Found, *, by: User) -> Source:
    """Make a source; it is not read before its columns are chosen."""
    require_touch(queue, by, Role.MANAGE)
    owner = queue.owner
    if Source.objects.filter(owner=owner).count() >= MOST:
        raise BadSourceError("address", f"There are {MOST} sources already. Delete one first.")
    same = Source.objects.filter(owner=owner, key=found.key).select_related("queue").first()
    if same is not None:
        raise BadSourceError(
            "address", f"The queue “{same.queue}” reads this table already. Its messages would be sent twice."
        )
    try:
        with transaction.atomic():
            source = Source.objects.create(
                owner=owner,
                queue=queue,
                kind=access.kind,
                title=found.title[:200],
                key=found.key,
                address=access.address.strip()[:500],
                place=dict(found.place),
                credentials=_sealed(access),
            )
            record(
                "source.added", source, by=by, after=values_of(source, ("kind", "title", "address", "queue"))
            )
            return source
    except IntegrityError as error:
        raise BadSourceError("address", "This table was added just now.") from error


def _sealed(access: Access) -> dict[str, str]:
    name = "token" if access.kind == Source.Kind.NOTION else "account"
    return {name: access.secret.strip()}


def renew_access(source: Source, secret: str, *, by: User) -> Source:
    """Give a source new credentials, after they were tried, and let it go on."""
    require_touch(source, by, Role.MANAGE)
    access = Access(kind=source.kind, address=source.address, secret=secret)
    if source.key not in {found.key for found in tables(access)}:
        raise BadSourceError("secret", "With these credentials the table of this source is not shown.")
    with transaction.atomic():
        source.credentials = _sealed(access)
        source.save(update_fields=["credentials"])
        record("source.changed", source, by=by, note="a new token or key")
        return try_again(source, by=by)


def look(source: Source) -> tuple[Schema, frozenset[str]]:
    """Ask for the columns of the table as they are now; also return titles that several have. May raise a Trouble."""
    table = opened(source)
    try:
        schema = table.schema()
        return schema, repeated_titles(table)
    finally:
        table.close()


def choose_columns(
    source: Source,
    columns: Columns,
    *,
    every_minutes: int,
    schema: Schema,
    repeated: frozenset[str],
    by: User,
) -> Source:
    """Save what the columns mean, and read the table at once; raise MappingError."""
    require_touch(source, by, Role.MANAGE)
    if needs_own_id(source) and Means.OWN_ID not in columns.reads:
        raise MappingError(Means.OWN_ID, "Choose the column in which each row has an id of its own.")
    mapping.check(columns, schema, words=writing.WORDS, repeated=repeated)
    with transaction.atomic():
        source = _locked(source)
        before = mapping.columns_of(source.mapping)
        _keep_own_ids(source, before, columns)
        if before.tells != columns.tells:
            _tell_all_again(source)
        source.mapping, source.every_minutes = columns.as_json(), every_minutes
        now = timezone.now()
        source.next_read_at = source.next_tell_at = now
        source.stopped_at, source.stopped_why, source.retry_at = None, "", None
        source.save(
            update_fields=[
                "mapping",
                "every_minutes",
                "next_read_at",
                "next_tell_at",
                "stopped_at",
                "stopped_why",
                "retry_at",
            ]
        )
        reading.fail(source, "The columns were changed.")
        old, new = differing(before.as_json(), columns.as_json())
        record("source.changed", source, by=by, before=old, after=new, note="its columns")
    return source


def _keep_own_ids(source: Source, before: Columns, columns: Columns) -> None:
    """Refuse another column for own ids once rows are known by it: each row would be sent a second time."""
    was, will = (each.reads.get(Means.OWN_ID) for each in (before, columns))
    if source.mapping and was != will and SourceRow.objects.filter(source=source).exclude(own_id="").exists():
        raise MappingError(
            Means.OWN_ID,
            "The rows are known by their ids already. With other ids they would all be sent again.",
        )


def _tell_all_again(source: Source) -> None:
    Item.objects.filter(queue=source.queue, source=source.key).exclude(told="").update(told="")
    SourceRow.objects.filter(source=source).exclude(problem="").update(due=True, repairs=0)


def read_now(source: Source, *, by: User) -> Source:
    """Read the table as soon as a worker is free. A service that asked us to wait is not asked sooner."""
    require_touch(source, by, Role.SEND)
    if not source.mapping:
        raise BadSourceError("columns", "Choose the columns first.")
    if source.switched_off_at is not None:
        raise BadSourceError("source", "The source is switched off. Switch it on first.")
    now = timezone.now()
    fields = {"next_read_at": now, "next_tell_at": now, "stopped_at": None, "stopped_why": ""}
    if source.failures:  # our own pause after failures
        fields["retry_at"] = None
    with transaction.atomic():
        Source.objects.filter(pk=source.pk).update(**fields)
        record("source.read", source, by=by, quiet=timedelta(minutes=1))
    source.refresh_from_db()
    return source


def try_again(source: Source, *, by: User) -> Source:
    """Let a source go on after it stopped or failed."""
    require_touch(source, by, Role.MANAGE)
    now = timezone.now() if source.mapping else None
    Source.objects.filter(pk=source.pk).update(
        stopped_at=None,
        stopped_why="",
        failing_since=None,
        failures=0,
        trouble="",
        retry_at=None,
        next_read_at=now,
        next_tell_at=now,
    )
    source.refresh_from_db()
    return source


def switch_off(source: Source, *, by: User) -> Source:
    """Read and write nothing more. Its items stay in the queue."""
    require_touch(source, by, Role.MANAGE)
    with transaction.atomic():
        Source.objects.filter(pk=source.pk, switched_off_at=None).update(switched_off_at=timezone.now())
        reading.fail(source, f"Switched off by {by}.")
        record("source.changed", source, by=by, note="switched off")
    source.refresh_from_db()
    return source


def switch_on(source: Source, *, by: User) -> Source:
    require_touch(source, by, Role.MANAGE)
    with transaction.atomic():
        Source.objects.filter(pk=source.pk).update(switched_off_at=None)
        record("source.changed", source, by=by, note="switched on")
        return try_again(source, by=by)


def withdraw_missing(source: Source, *, by: User) -> int:
    """Withdraw the items of all rows that the last whole read did not find; return how many."""
    require_touch(source, by, Role.SEND)
    with transaction.atomic():
        done = missing.withdraw(source, list(missing.missing_rows(source)))
        Source.objects.filter(pk=source.pk).update(missing=0)
        record("source.withdrew", source, by=by, after={"messages": done})
    return done


def waiting_items(source: Source) -> int:
    """Count the items of the source that have not begun."""
    return _waiting(source).count()


def _waiting(source: Source) -> "QuerySet[Item]":
    now = timezone.now()
    rows = Item.objects.filter(queue=source.queue, source=source.key)
    return rows.filter(condition(ItemState.WAITING, now) | condition(ItemState.PLANNED, now))


def delete(source: Source, *, withdraw: bool, by: User) -> int:
    """Delete a source with its log. Its items stay in the queue unless they are withdrawn with it; return how many."""
    require_touch(source, by, Role.MANAGE)
    done = 0
    if withdraw:
        while ids := list(_waiting(source).values_list("pk", flat=True)[: missing.SLICE]):
            gone = actions.withdraw(source.queue, by=by, item_ids=ids, by_source=True).done
            done += gone
            if not gone:
                break
    with transaction.atomic():
        record("source.removed", source, by=by, after={"withdrawn": done})
        source.delete()
    return done


def _locked(source: Source) -> Source:
    return (
        Source.objects.select_for_update(no_key=True, of=("self",)).select_related("queue").get(pk=source.pk)
    )
