"""Tables in the output of commands."""

from collections.abc import Sequence

Row = Sequence[object]


def table(head: Row, rows: Sequence[Row]) -> list[str]:
    """Return lines of text: columns as wide as their widest cell, numbers to the right."""
    cells = [[str(cell) for cell in row] for row in (head, *rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    numeric = [all(isinstance(row[column], int) for row in rows) for column in range(len(head))]
    return ["  ".join(map(_aligned, row, widths, numeric)).rstrip() for row in cells]


def _aligned(cell: str, width: int, right: bool) -> str:
    return cell.rjust(width) if right else cell.ljust(width)
