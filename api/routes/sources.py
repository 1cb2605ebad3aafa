"""Sources: tables at Notion and Google whose rows are items, what was read of them, and reading them now."""

from collections.abc import Callable, Sequence

from django.http import HttpRequest
from ninja import Path, Query, Router

from accounts.models import Role, User
from accounts.roles import visible
from api.access import MANAGE, READ, SEND, person_of
from api.paging import page
from api.problems import refusal
from api.routes.rows import seen, touched
from api.schemas.base import Id, ListAsked, Page
from api.schemas.sources import (
    MissingConfirmed,
    MissingWithdrawn,
    ReadShown,
    SourceShown,
    SourceState,
    WrongRowShown,
)
from queues.models import Source, SourceRead, SourceRow
from queues.sources import manage
from queues.sources.manage import BadSourceError
from queues.sources.missing import missing_rows
from reminders.drafts import NotPossibleError

router = Router(tags=["Sources"])
SOURCES = Source.objects.defer("credentials").select_related("queue")


@router.get("", response=Page[SourceShown], auth=READ)
def list_sources(request: HttpRequest, asked: Query[ListAsked]) -> Page[SourceShown]:
    """Return the sources, the newest first."""
    return page(visible(SOURCES.all(), person_of(request)), asked, _sources, newest_first=True)


@router.get("/{int:pk}", response=SourceShown, auth=READ)
def show_source(request: HttpRequest, pk: Path[Id]) -> SourceShown:
    """Return one source: how it does, and when it is read next."""
    return _sources([seen(SOURCES.all(), request, pk)])[0]


@router.get("/{int:pk}/reads", response=Page[ReadShown], auth=READ)
def list_reads(request: HttpRequest, pk: Path[Id], asked: Query[ListAsked]) -> Page[ReadShown]:
    """Return the last reads of a source with what was counted in them, the newest first."""
    rows = SourceRead.objects.filter(source=seen(SOURCES.all(), request, pk))
    return page(rows, asked, _reads, newest_first=True)


@router.get("/{int:pk}/rows", response=Page[WrongRowShown], auth=READ)
def list_wrong_rows(request: HttpRequest, pk: Path[Id], asked: Query[ListAsked]) -> Page[WrongRowShown]:
    """Return the rows that were not taken or not written, each with its reason."""
    rows = SourceRow.objects.filter(source=seen(SOURCES.all(), request, pk))
    return page(rows.exclude(problem="", unwritten=""), asked, _rows)


@router.post("/{int:pk}/read", response=SourceShown, auth=SEND)
def read_source(request: HttpRequest, pk: Path[Id]) -> SourceShown:
    """Read the table as soon as a worker is free. A service that asked us to wait is not asked sooner."""
    return _changed(manage.read_now, request, pk, Role.SEND)


@router.post("/{int:pk}/withdraw-missing", response=MissingWithdrawn, auth=SEND)
def withdraw_missing(
    request: HttpRequest, pk: Path[Id], body: MissingConfirmed | None = None
) -> MissingWithdrawn:
    """Withdraw the messages of rows that the last whole read did not find. This has to be confirmed."""
    source = touched(SOURCES.all(), request, pk, Role.SEND)
    if not (body and body.confirmed):
        rows = missing_rows(source).count()
        question = f"The messages of {rows:,} missing rows are withdrawn. Send it again with confirmed."
        raise refusal(409, "confirmation-needed", question, extra={"rows": rows})
    return MissingWithdrawn(done=manage.withdraw_missing(source, by=person_of(request)))


@router.post("/{int:pk}/switch-on", response=SourceShown, auth=MANAGE)
def switch_source_on(request: HttpRequest, pk: Path[Id]) -> SourceShown:
    """Read and write the table again, also after it stopped."""
    return _changed(manage.switch_on, request, pk, Role.MANAGE)


@router.post("/{int:pk}/switch-off", response=SourceShown, auth=MANAGE)
def switch_source_off(request: HttpRequest, pk: Path[Id]) -> SourceShown:
    """Read and write nothing more. The items of the source stay in the queue."""
    return _changed(manage.switch_off, request, pk, Role.MANAGE)


def _changed(change: Callable[..., Source], request: HttpRequest, pk: int, role: Role) -> SourceShown:
    source, by = touched(SOURCES.all(), request, pk, role), person_of(request)
    return _sources([_tried(change, source, by)])[0]


def _tried(change: Callable[..., Source], source: Source, by: User) -> Source:
    try:
        return change(source, by=by)
    except (BadSourceError, NotPossibleError) as error:
        raise refusal(409, "wrong-state", str(error)) from error


def _sources(found: Sequence[Source]) -> list[SourceShown]:
    names = ("title", "address", "every_minutes", "next_read_at", "retry_at", "missing")
    return [
        SourceShown(
            id=source.pk,
            owner=source.owner_id,
            queue=source.queue_id,
            kind="notion" if source.kind == Source.Kind.NOTION else "sheet",
            state=_state(source),
            why=source.stopped_why or source.trouble,
            own_id_source=source.key,
            **{name: getattr(source, name) for name in names},
        )
        for source in found
    ]


def _state(source: Source) -> SourceState:
    if source.switched_off_at is not None:
        return "off"
    if source.stopped_at is not None:
        return "stopped"
    if not source.mapping:
        return "new"
    return "failing" if source.failing_since is not None else "reading"


def _reads(found: Sequence[SourceRead]) -> list[ReadShown]:
    names = ("started_at", "ended_at", "outcome", "counts", "why")
    return [ReadShown(id=read.pk, **{name: getattr(read, name) for name in names}) for read in found]


def _rows(found: Sequence[SourceRow]) -> list[WrongRowShown]:
    names = ("own_id", "place", "problem", "unwritten")
    return [
        WrongRowShown(id=row.pk, item=row.item_id, **{name: getattr(row, name) for name in names})
        for row in found
    ]
