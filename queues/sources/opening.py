"""Opens the table of a source with its credentials."""

from accounts.encryption import UnreadableSecretError
from queues.models import Source
from queues.sources.mapping import Columns, Means, columns_of
from queues.sources.tables import Schema, Table
from queues.sources.troubles import StoppedError


def opened(source: Source) -> Table:
    """Return the table; raise StoppedError where the stored credentials cannot be read."""
    from queues.sources.notion import NotionTable  # noqa: PLC0415 - the vendors' libraries are large
    from queues.sources.sheets import SheetTable  # noqa: PLC0415

    own_id = columns_of(source.mapping).reads.get(Means.OWN_ID, "")
    place = source.place
    try:
        if source.kind == Source.Kind.NOTION:
            return NotionTable(
                token=source.credentials["token"], data_source=place["data_source"], own_id=own_id
            )
        return SheetTable(
            account=source.credentials["account"],
            spreadsheet=place["spreadsheet"],
            tab=place["tab"],
            own_id=own_id,
        )
    except UnreadableSecretError as error:
        raise StoppedError(f"{error} Or enter the credentials of this source again.") from error


def zone_of(source: Source, schema: Schema) -> str:
    """Return the zone of times that name none: that of the spreadsheet, else that of the queue."""
    return schema.zone or source.queue.zone


def needs_own_id(source: Source) -> bool:
    """Decide whether a column must have the own ids: the rows of a sheet have no other name."""
    return source.kind == Source.Kind.SHEET


def repeated_titles(table: Table) -> frozenset[str]:
    from queues.sources.sheets import SheetTable  # noqa: PLC0415

    return frozenset(table.repeated_titles()) if isinstance(table, SheetTable) else frozenset()


def columns(source: Source) -> Columns:
    return columns_of(source.mapping)
