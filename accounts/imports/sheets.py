"""Reads rows out of CSV and XLSX files as people save them, a row at a time."""

import codecs
import csv
import datetime as dt
import io
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, BinaryIO
from xml.etree.ElementTree import ParseError

import openpyxl
from openpyxl.utils.exceptions import InvalidFileException

SAMPLE = 64 * 1024
DELIMITERS = ",;\t|"
ZIP, OLD_EXCEL = b"PK\x03\x04", b"\xd0\xcf\x11\xe0"
LARGEST_UNZIPPED = 1024**3

Cells = list[str]


class SheetError(ValueError):
    """The file cannot be read as a table. The text says why, and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """How a file is to be read; found once, when it is uploaded."""

    kind: str  # csv or xlsx
    encoding: str = ""
    delimiter: str = ""


class Sheet:
    """A table to be read once, from top to bottom; `share` says how far the reading is, from 0 to 1."""

    def __init__(self, read: "Callable[[Sheet], Iterator[Cells]]") -> None:
        self._read = read
        self.share = 0.0

    def __iter__(self) -> Iterator[Cells]:
        try:
            yield from self._read(self)
        except csv.Error as error:
            raise SheetError(
                f"The file breaks off in the middle of a row: {error}. Save it again."
            ) from error
        except UnicodeError as error:
            raise SheetError("The file changes its encoding on the way. Save it again as UTF-8.") from error
        except (zipfile.BadZipFile, ParseError, KeyError, ValueError) as error:
            raise SheetError("The workbook is damaged. Open it, save it again as .xlsx or CSV.") from error


def detect(file: BinaryIO) -> Format:
    """How to read the file. Raises SheetError for what is no table."""
    file.seek(0)
    head = file.read(SAMPLE)
    if not head.strip(b"\0 \r\n\t"):
        raise SheetError("The file is empty. Choose a CSV or XLSX file with one recipient per row.")
    if head.startswith(OLD_EXCEL):
        raise SheetError("This is an old Excel file. Save it as .xlsx or CSV, and choose that.")
    if head.startswith(ZIP):
        _check_workbook(file)
        return Format(kind="xlsx")
    encoding = _encoding(file, head)
    text = _decoded(head, encoding)
    if "\0" in text:
        raise SheetError("This is not a table. Choose a CSV or XLSX file with one recipient per row.")
    return Format(kind="csv", encoding=encoding, delimiter=_delimiter(text))


@contextmanager
def opened(file: BinaryIO, found: Format) -> Iterator[Sheet]:
    """The file's first table. The file itself stays open."""
    file.seek(0)
    if found.kind == "xlsx":
        workbook = openpyxl.load_workbook(file, read_only=True, data_only=True)
        try:
            yield Sheet(partial(_xlsx_rows, workbook.worksheets[0]))
        finally:
            workbook.close()
        return
    stream = io.TextIOWrapper(file, encoding=found.encoding, newline="")
    try:
        yield Sheet(partial(_csv_rows, file, stream, found.delimiter))
    finally:
        stream.detach()


def _xlsx_rows(worksheet: Any, sheet: Sheet) -> Iterator[Cells]:
    # Other programs than Excel may leave out how many rows there are, or get it wrong.
    expected = worksheet.max_row or 0
    for number, values in enumerate(worksheet.iter_rows(values_only=True), start=1):
        sheet.share = min(number / expected, 1.0) if expected else 0.0
        yield [_as_text(value) for value in values]


def _csv_rows(file: BinaryIO, stream: io.TextIOWrapper, delimiter: str, sheet: Sheet) -> Iterator[Cells]:
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    stream.seek(0)
    for number, cells in enumerate(csv.reader(_without_hint(stream), delimiter=delimiter), start=1):
        if number % 500 == 0:
            sheet.share = min(file.tell() / size, 1.0)
        yield [cell.replace("\0", "") for cell in cells]


def _without_hint(lines: Iterable[str]) -> Iterator[str]:
    """Excel lets the first line name the delimiter: sep=;"""
    for number, line in enumerate(lines):
        if number or not line.lower().startswith("sep="):
            yield line


def _as_text(value: object) -> str:
    """A cell as its owner sees it; a phone number that became a number gets its digits back."""
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, dt.datetime) and value.time() == dt.time():
        return value.date().isoformat()
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    return str(value).replace("\0", "")


def _check_workbook(file: BinaryIO) -> None:
    try:
        with zipfile.ZipFile(file) as archive:
            unzipped = sum(entry.file_size for entry in archive.infolist())
        if unzipped > LARGEST_UNZIPPED:
            raise SheetError("The workbook is too large once it is unpacked. Save the sheet as CSV.")
        file.seek(0)
        openpyxl.load_workbook(file, read_only=True).close()
    except (zipfile.BadZipFile, InvalidFileException, KeyError, ParseError, ValueError) as error:
        if isinstance(error, SheetError):
            raise
        raise SheetError("This is not an Excel workbook. Choose a CSV or XLSX file.") from error


def _encoding(file: BinaryIO, head: bytes) -> str:
    """By its mark, by its zeros, and else the first of the usual ones that fits the whole file."""
    for mark, encoding in (
        (codecs.BOM_UTF8, "utf-8-sig"),
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
    ):
        if head.startswith(mark):
            return encoding
    evens, odds = head[::2].count(0), head[1::2].count(0)
    if max(evens, odds) > len(head) // 8:
        return "utf-16-be" if evens > odds else "utf-16-le"
    return next((name for name in ("utf-8", "cp1252") if _fits(file, name)), "latin-1")


def _fits(file: BinaryIO, encoding: str) -> bool:
    decoder = codecs.getincrementaldecoder(encoding)()
    file.seek(0)
    try:
        while chunk := file.read(SAMPLE):
            decoder.decode(chunk)
        decoder.decode(b"", final=True)
    except UnicodeError:
        return False
    return True


def _decoded(head: bytes, encoding: str) -> str:
    """The beginning as text; it may end within a letter."""
    return codecs.getincrementaldecoder(encoding)(errors="ignore").decode(head)


def _delimiter(text: str) -> str:
    """What parts the sample into the most rows of one width above one; a comma where nothing does."""
    first, _, _ = text.partition("\n")
    if first.lower().startswith("sep=") and first.strip()[4:] in DELIMITERS:
        return first.strip()[4:] or ","

    def fit(delimiter: str) -> tuple[int, int]:
        rows = islice(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter), 50)
        widths = Counter(len(row) for row in rows if len(row) > 1)
        return max(((count, width) for width, count in widths.items()), default=(0, 0))

    best = max(DELIMITERS, key=fit)
    return best if fit(best)[0] else ","
