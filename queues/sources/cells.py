"""Reads single cells of a sheet: times and own ids."""

from datetime import datetime, timedelta

from queues.sources.tables import Cell, written_number


def moment_of(number: float) -> datetime:
    """Return the time, without a zone, that a cell with a date holds: days since 30 December 1899."""
    return datetime(1899, 12, 30) + timedelta(seconds=round(number * 86_400))  # noqa: DTZ001


def own_id_of(cell: Cell) -> str:
    """Return the own id in a cell: of a number not what is shown, which changes with its format."""
    return (written_number(cell.number) if cell.number is not None else cell.text).strip()
