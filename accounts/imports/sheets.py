"""Reads rows from CSV and XLSX files as people save them, one row at a time."""

import codecs
import csv
import datetime as dt
import io
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import dropwhile, islice
from typing import TYPE_CHECKING, BinaryIO
from xml.etree.ElementTree import ParseError

import structlog

from accounts.imports.workbook_errors import NoTableError, PartTooLargeError

if TYPE_CHECKING:
    from accounts.imports.workbooks import Workbook

log = structlog.get_logger(__name__)

SAMPLE = 64 * 1024
DELIMITERS = ",;\t|"
ZIP, OLD_EXCEL = b"PK\x03\x04", b"\xd0\xcf\x11\xe0"
# A file that begins like this is text, not a table. Some programs call a web page .xls.
NO_TABLES = (
    (b"%PDF", "a PDF"),
    (b"<", "a web page"),
    (b"{", "JSON"),
    (b"[{", "JSON"),
    (b"BEGIN:VCARD", "a vCard"),
)
LARGEST_UNZIPPED = 1024**3
LONGEST_LINE = 1024**2  # of a CSV file, in characters
LAST_ROW = 1_048_576  # of Excel itself
MOST_COLUMNS = 200
STRAY = 3  # control characters that a text may contain after a program error; in a long text one percent
# All errors of a broken workbook: neither ZIP, nor XML, nor openpyxl says how it fails.
DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    ParseError,
    LookupError,
    ValueError,
    TypeError,
    AttributeError,
    EOFError,
    OSError,
    OverflowError,
    NotImplementedError,
    RuntimeError,
)

TOO_LARGE = "The workbook is too large once it is unpacked. Save the sheet as CSV."
NO_WORKBOOK = (
    "This is not an Excel workbook, or one that cannot be read. Save its sheet as CSV, and choose that."
)

Cells = list[str]


class SheetError(ValueError):
    """The file cannot be read as a table. The text says why, and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """The format of a file; detected once, when the file is uploaded."""

    kind: str  # csv or xlsx
    encoding: str = ""
    delimiter: str = ""


class Sheet:
    """A table that is read once, from top to bottom. `share` says how far the reading is, from 0 to 1."""

    def __init__(self, read: "Callable[[Sheet], Iterator[Cells]]") -> None:
        self._read = read
        self.row = 0  # the row that was read last
        self.share = 0.0

    def __iter__(self) -> Iterator[Cells]:
        try:
            yield from self._read(self)
        except csv.Error as error:
            raise SheetError(
                f"The file breaks off in the middle of row {self.row + 1:,}: {error}. A quote may not be closed "
                "there. Correct it, or save the file again."
            ) from error
        except UnicodeError as error:
            raise SheetError("The file uses more than one encoding. Save it again as UTF-8.") from error
        except SheetError:
            raise
        except PartTooLargeError as error:
            raise SheetError(TOO_LARGE) from error
        except DAMAGED as error:
            log.warning("sheet_damaged", row=self.row, error=repr(error)[:200])
            raise SheetError("The workbook is damaged. Open it, save it again as .xlsx or CSV.") from error


def detect(file: BinaryIO) -> Format:
    """Return how to read the file. Raises SheetError when the file is not a table."""
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
    begins = text.lstrip("\ufeff \r\n\t").encode()
    if what := next((what for beginning, what in NO_TABLES if begins.startswith(beginning)), ""):
        raise SheetError(f"This is {what}, not a table. Save it as CSV or XLSX, and choose that.")
    if sum(sign < " " and sign not in "\t\n\r" for sign in text) > max(STRAY, len(text) // 100):
        raise SheetError("This is not a table. Choose a CSV or XLSX file with one recipient per row.")
    return Format(kind="csv", encoding=encoding, delimiter=_delimiter(text))


@contextmanager
def opened(file: BinaryIO, found: Format) -> Iterator[Sheet]:
    """Open the file's first table. The file itself stays open."""
    file.seek(0)
    if found.kind == "xlsx":
        with _workbook(file) as workbook:
            yield Sheet(partial(_xlsx_rows, workbook))
        return
    stream = io.TextIOWrapper(file, encoding=found.encoding, newline="")
    try:
        yield Sheet(partial(_csv_rows, file, stream, found.delimiter))
    finally:
        stream.detach()


def from_first_filled(rows: Iterable[Cells]) -> Iterator[tuple[int, Cells]]:
    """Yield the rows with their numbers, without the empty ones above the table."""
    return dropwhile(lambda row: not any(cell.strip() for cell in row[1]), enumerate(rows, start=1))


def _xlsx_rows(workbook: "Workbook", sheet: Sheet) -> Iterator[Cells]:
    # Other programs than Excel may leave out how many rows there are, or get it wrong: it says how far we are, and
    # not how wide a row is.
    expected = workbook.expected_rows
    for number, values in enumerate(workbook.rows(), start=1):
        if number > LAST_ROW:
            raise SheetError("The workbook names rows that no sheet has. Open it, and save it again.")
        sheet.row, sheet.share = number, min(number / expected, 1.0) if expected else 0.0
        yield [
            _as_text(value) for value in values[: MOST_COLUMNS + 1]
        ]  # one more shows that there are too many


def _csv_rows(file: BinaryIO, stream: io.TextIOWrapper, delimiter: str, sheet: Sheet) -> Iterator[Cells]:
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    stream.seek(0)
    lines = _Lines(_without_hint(stream))
    for sheet.row, cells in enumerate(csv.reader(lines, delimiter=delimiter), start=1):
        if sheet.row % 500 == 0:
            sheet.share = min(file.tell() / size, 1.0)
        if lines.never_closed():
            raise SheetError(
                f"A quote that begins in row {sheet.row:,} is never closed, so all after it would be one cell. "
                "Correct it, or save the file again."
            )
        yield [cell.replace("\0", "") for cell in cells]


class _Lines:
    """The lines of a CSV file for its reader, which accepts a quote that is never closed without an error."""

    def __init__(self, stream: Iterable[str]) -> None:
        self._lines = iter(stream)
        self._taken = list[str]()  # for the row that is being read
        self._ended = False

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = next(self._lines, None)
        if line is None:
            self._ended = True
            raise StopIteration
        if len(line) > LONGEST_LINE:
            raise SheetError("A line of the file is longer than any row of a table. Save it again as CSV.")
        self._taken.append(line)
        return line

    def never_closed(self) -> bool:
        """Return whether the last row took several lines up to the end of the file, because a quote was not closed."""
        taken, self._taken = self._taken, []
        return self._ended and len(taken) > 1 and sum(line.count('"') for line in taken) % 2 == 1


def _without_hint(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines without Excel's first line that names the delimiter: sep=;"""
    for number, line in enumerate(lines):
        if number or not line.lower().startswith("sep="):
            yield line


def _as_text(value: object) -> str:
    """Return a cell as its owner sees it; a phone number that became a number gets its digits back."""
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
            sizes = sum(entry.file_size for entry in archive.infolist())
    except DAMAGED as error:
        raise SheetError(NO_WORKBOOK) from error
    if sizes > LARGEST_UNZIPPED:
        raise SheetError(TOO_LARGE)
    with _workbook(file):
        pass


@contextmanager
def _workbook(file: BinaryIO) -> "Iterator[Workbook]":
    """Open the first visible sheet; raises SheetError."""
    from accounts.imports.workbooks import Workbook  # noqa: PLC0415 - large, and rarely needed

    file.seek(0)
    try:
        workbook = Workbook(file)
    except PartTooLargeError as error:
        raise SheetError(TOO_LARGE) from error
    except NoTableError as error:
        raise SheetError("There is no sheet with a table in the workbook.") from error
    except DAMAGED as error:
        log.warning("sheet_damaged", error=repr(error)[:200])
        raise SheetError(NO_WORKBOOK) from error
    try:
        yield workbook
    finally:
        workbook.close()


def _encoding(file: BinaryIO, head: bytes) -> str:
    """Return the encoding: by its mark, by its zeros, or the first usual one that fits the whole file."""
    for mark, encoding in (
        (codecs.BOM_UTF8, "utf-8-sig"),
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
    ):
        if head.startswith(mark):
            return encoding
    evens, odds = head[::2].count(0), head[1::2].count(0)
    if max(evens, odds) > len(head) // 8 and min(evens, odds) * 10 <= max(evens, odds):
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
    """Return the beginning as text; it may end in the middle of a letter."""
    return codecs.getincrementaldecoder(encoding)(errors="ignore").decode(head)


def _delimiter(text: str) -> str:
    """Return the sign that splits the sample into the most rows of equal width above one, or a comma."""
    first, _, _ = text.partition("\n")
    if first.lower().startswith("sep=") and first.strip()[4:] in DELIMITERS:
        return first.strip()[4:] or ","

    def fit(delimiter: str) -> tuple[int, int]:
        rows = islice(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter), 50)
        widths = Counter(len(row) for row in rows if len(row) > 1)
        return max(((count, width) for width, count in widths.items()), default=(0, 0))

    best = max(DELIMITERS, key=fit)
    return best if fit(best)[0] else ","
