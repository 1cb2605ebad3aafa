"""Reads the rows of an XLSX file from anybody, with memory and time bounded by its size.

openpyxl reads most parts of a workbook at once: a file of some kilobytes can hold a part that unpacks to a gigabyte
and takes a hundred times as much memory. The name of a part says nothing about its use, so each part is measured when
it is requested.
"""

import io
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from time import thread_time
from typing import IO, Any, BinaryIO, Self
from xml.etree.ElementTree import ParseError

from openpyxl.reader.excel import ExcelReader
from openpyxl.reader.strings import read_string_table
from openpyxl.worksheet._read_only import ReadOnlyWorksheet
from openpyxl.worksheet._reader import WorkSheetParser
from openpyxl.xml.constants import SHARED_STRINGS

from accounts.imports.workbook_errors import NoTableError, PartTooLargeError

LARGEST_STRINGS = 128 * 1024**2  # the texts of a workbook
LONGEST_OPENING = (
    30.0  # seconds of the processor until the rows begin: a small part may hold millions of texts
)
LARGEST_PART = 1024**2  # styles, names and relations: of each
LARGEST_ROW = 8 * 1024**2  # of a sheet, as XML
HEAD = 64 * 1024  # of a sheet, where its size stands


class Workbook:
    """The first visible sheet; raises PartTooLargeError, NoTableError, or whatever openpyxl fails with."""

    def __init__(self, file: BinaryIO) -> None:
        reader = _Reader(file)
        reader.read()
        self._book: Any = reader.wb
        self._sheet: Any = reader.sheet
        self.expected_rows: int = self._sheet.max_row or 0  # as the file says, which may be wrong

    def rows(self) -> Iterator[tuple[object, ...]]:
        """Yield the values of each row; raises PartTooLargeError."""
        self._sheet.reset_dimensions()
        for values in self._sheet.iter_rows(values_only=True):
            self._sheet.begin_row()
            yield values

    def close(self) -> None:
        self._book.close()


class _Watched:
    """A part of a workbook that openpyxl reads in a loop, until it has taken too long."""

    def __init__(self, source: IO[bytes]) -> None:
        self._source = source
        self._ends = thread_time() + LONGEST_OPENING

    def read(self, size: int = -1) -> bytes:
        if thread_time() > self._ends:
            raise PartTooLargeError
        return self._source.read(size)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._source.close()


class _Archive(zipfile.ZipFile):
    def read(self, name: str | zipfile.ZipInfo, pwd: bytes | None = None) -> bytes:
        """Return a part that openpyxl reads as a whole."""
        self.require(name, LARGEST_PART)
        return super().read(name, pwd)

    def require(self, name: str | zipfile.ZipInfo, most: int) -> None:
        part = name if isinstance(name, zipfile.ZipInfo) else self.getinfo(name)
        if part.file_size > most:
            raise PartTooLargeError


class _Source:
    """The XML of a sheet, of which openpyxl keeps everything that belongs to one row."""

    def __init__(self, source: Any) -> None:
        self._source = source
        self._of_row = 0

    def begin_row(self) -> None:
        self._of_row = 0

    def read(self, size: int = -1) -> bytes:
        piece: bytes = self._source.read(size)
        self._of_row += len(piece)
        if self._of_row > LARGEST_ROW:
            raise PartTooLargeError
        return piece

    def close(self) -> None:
        self._source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Sheet(ReadOnlyWorksheet):
    _source: _Source | None = None
    _min_column: int | None
    _min_row: int | None
    _max_column: int | None
    _max_row: int | None

    def begin_row(self) -> None:
        if self._source is not None:
            self._source.begin_row()

    def _get_size(self) -> None:
        """Look for the size at the beginning only: openpyxl would read the whole sheet to find none."""
        with self._get_source() as source:
            head = io.BytesIO(source.read(HEAD))
        with suppress(ParseError):  # it was cut off
            found = WorkSheetParser(head, []).parse_dimensions()
            if found is not None:
                self._min_column, self._min_row, self._max_column, self._max_row = found

    def _get_source(self) -> _Source:
        self._source = _Source(super()._get_source())  # type: ignore[misc]  # its stubs lack it
        return self._source


class _Reader(ExcelReader):
    package: Any
    archive: _Archive
    wb: Any
    sheet: _Sheet

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(file, read_only=True, data_only=True, keep_links=False)
        self.archive = _Archive(file)

    def read_strings(self) -> None:
        part = self.package.find(SHARED_STRINGS)
        if part is not None:
            name = part.PartName[1:]
            self.archive.require(name, LARGEST_STRINGS)
            with _Watched(self.archive.open(name)) as source:
                self.shared_strings = read_string_table(source)

    def read_worksheets(self) -> None:
        """Read one sheet: a workbook may name thousands that are all the same part."""
        tables = [
            (sheet, rel)
            for sheet, rel in self.parser.find_sheets()
            if "chartsheet" not in rel.Type and rel.target in self.valid_files
        ]
        shown = [each for each in tables if each[0].state == "visible"]
        if not tables:
            raise NoTableError
        sheet, rel = (shown or tables)[0]
        self.sheet = _Sheet(self.wb, sheet.name, rel.target, self.shared_strings)
        self.wb._sheets.append(self.sheet)
