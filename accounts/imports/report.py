"""The result of every row of an import, as lines of a file."""

from collections.abc import Iterator

from django.db.models import OuterRef, QuerySet, Subquery

from accounts.models import Import, ImportRow, Recipient

TITLES = ("row", "as written", "address", "name", "result", "reason")


def report_lines(job: Import) -> Iterator[tuple[object, ...]]:
    yield TITLES
    rows = job.rows.order_by("number").only(
        "number", "written", "address", "name", "problem", "twin", "outcome", "known"
    )
    for row in with_dead_addresses(job, rows).iterator(2_000):
        yield (
            row.number,
            row.written,
            row.address,
            row.name,
            *result(row, saved=job.status == Import.Status.DONE),
        )


def with_dead_addresses(job: Import, rows: QuerySet[ImportRow]) -> QuerySet[ImportRow]:
    """Return the rows, each with the reason why its address is known to receive nothing, if it is."""
    marked = Recipient.objects.filter(
        owner=job.owner_id,
        channel=job.channel,
        address=OuterRef("address"),
        undeliverable_at__isnull=False,
    )
    return rows.annotate(dead=Subquery(marked.values("undeliverable_for")[:1]))


def result(row: ImportRow, *, saved: bool) -> tuple[str, str]:
    """Return what happens, or happened, to a row, and the reason if the row is left out."""
    if row.problem:
        return "left out", row.problem
    if row.twin is not None:
        return "left out", f"The same address as in row {row.twin}."
    dead = getattr(row, "dead", None)
    note = f"Undeliverable: {dead}. Nothing is sent there." if dead else ""
    if saved:
        return row.get_outcome_display().lower(), note
    return ("known already" if row.known else "new"), note
