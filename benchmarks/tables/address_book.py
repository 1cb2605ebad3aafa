"""python -m benchmarks.tables.address_book PATH ROWS: write a CSV or XLSX file of so many people."""

import csv
import sys
from collections.abc import Iterator
from pathlib import Path

import openpyxl

TITLES = ("Phone", "Name", "City", "Tags", "Due")


def people(rows: int) -> Iterator[tuple[str, ...]]:
    for number in range(rows):
        yield f"+6012{number:07}", f"Person {number}", "Ipoh", f"list {number % 20}", "20 November"


def write_csv(path: Path, rows: int) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(TITLES)
        writer.writerows(people(rows))


def write_xlsx(path: Path, rows: int) -> None:
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet()
    sheet.append(TITLES)
    for person in people(rows):
        sheet.append(person)
    book.save(path)


if __name__ == "__main__":
    target, count = Path(sys.argv[1]), int(sys.argv[2])
    (write_xlsx if target.suffix == ".xlsx" else write_csv)(target, count)
