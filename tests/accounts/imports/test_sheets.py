"""Files as people save them: encodings, delimiters, workbooks, and what is no table at all."""

import datetime as dt
import io
import re
import zipfile
from typing import Any

import openpyxl
import pytest

from accounts.imports import workbooks
from accounts.imports.sheets import MOST_COLUMNS, Format, SheetError, detect, opened

TEXT = "Name;Telefon\nJörg Müller;+49 151 12345678\nZoë „Z“;0060123456789\n"
ROWS = [["Name", "Telefon"], ["Jörg Müller", "+49 151 12345678"], ["Zoë „Z“", "0060123456789"]]


def rows(content: bytes) -> list[list[str]]:
    file = io.BytesIO(content)
    with opened(file, detect(file)) as sheet:
        return list(sheet)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252"])
def test_every_usual_encoding_is_read(encoding: str) -> None:
    assert rows(TEXT.encode(encoding)) == ROWS


def test_latin_1_is_read_where_nothing_else_fits() -> None:
    assert rows(b"Name,Phone\nJ\xf6rg\x81,1\n") == [["Name", "Phone"], ["Jörg\x81", "1"]]


def test_a_letter_that_is_cut_by_the_sample_is_no_reason_to_doubt_the_encoding() -> None:
    content = "Name,Phone\n" + "ö,1\n" * 40_000
    assert detect(io.BytesIO(content.encode())).encoding == "utf-8"


def test_one_wrong_byte_far_down_is_found() -> None:
    content = b"Name,Phone\n" + b"ok,1\n" * 40_000 + b"J\xf6rg,2\n"
    assert detect(io.BytesIO(content)).encoding == "cp1252"


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_every_usual_delimiter_and_line_end_is_read(delimiter: str, newline: str) -> None:
    content = newline.join(delimiter.join(row) for row in [["Name", "Phone"], ["A", "1"], ["B", "2"]])
    assert rows(content.encode()) == [["Name", "Phone"], ["A", "1"], ["B", "2"]]


def test_quotes_hold_newlines_and_delimiters_together() -> None:
    content = 'Name;Note\n"Lee; Ann";"first, second\nthird ""so"""\n'
    assert rows(content.encode()) == [["Name", "Note"], ["Lee; Ann", 'first, second\nthird "so"']]


def test_a_decimal_comma_does_not_beat_the_semicolon() -> None:
    assert rows(b"Name;Due\nAnn;12,50\nBen;7,00\n")[1] == ["Ann", "12,50"]


def test_the_hint_of_excel_is_followed_and_left_out() -> None:
    assert rows(b"sep=|\nName|Phone\nA|1\n") == [["Name", "Phone"], ["A", "1"]]


def test_a_single_column_is_a_table_too() -> None:
    assert rows(b"+60123456789\n+60123456780\n") == [["+60123456789"], ["+60123456780"]]


def workbook(*lines: list[object]) -> bytes:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    for line in lines:
        sheet.append(line)
    content = io.BytesIO()
    book.save(content)
    return content.getvalue()


def test_a_workbook_is_read_as_its_owner_sees_it() -> None:
    content = workbook(
        ["Name", "Phone", "Due", "Since", "Price"],
        ["Ann", 60123456789, dt.date(2026, 11, 20), dt.datetime.fromisoformat("2026-11-20T09:30"), 12.5],
        ["Ben", 60123456780.0, None, None, True],
    )
    assert rows(content) == [
        ["Name", "Phone", "Due", "Since", "Price"],
        ["Ann", "60123456789", "2026-11-20", "2026-11-20T09:30:00", "12.5"],
        ["Ben", "60123456780", "", "", "True"],
    ]


def with_sheet(data: bytes, *, strings: bytes = b"") -> bytes:
    """A workbook whose sheet has these rows, as bytes that openpyxl would never write."""
    content = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(workbook(["Phone"]))) as made,
        zipfile.ZipFile(content, "w", 8) as changed,
    ):
        for name in made.namelist():
            part = made.read(name)
            if name.endswith("sheet1.xml"):
                part = re.sub(rb"<sheetData>.*</sheetData>", b"<sheetData>" + data + b"</sheetData>", part)
            if strings:
                part = part.replace(b"</Types>", TYPE + b"</Types>").replace(b"</Relationships>", TIE)
            changed.writestr(name, part)
        if strings:
            changed.writestr("xl/sharedStrings.xml", strings)
    return content.getvalue()


MAIN = b'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
OFFICE = b"application/vnd.openxmlformats-officedocument.spreadsheetml"
TYPE = b'<Override PartName="/xl/sharedStrings.xml" ContentType="%s.sharedStrings+xml"/>' % OFFICE
TIE = (
    b'<Relationship Id="rId9" Target="sharedStrings.xml" Type="http://schemas.openxmlformats.org/'
    b'officeDocument/2006/relationships/sharedStrings"/></Relationships>'
)
LAUGHS = b"".join(b'<!ENTITY %c "%s">' % (c, b"&%c;" % (c - 1) * 10) for c in range(ord("b"), ord("j")))
BOMB = b'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">%s]><sst %s><si><t>&i;</t></si></sst>' % (LAUGHS, MAIN)
THIEF = b'<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><sst %s><si><t>&a;</t></si></sst>' % MAIN
FIRST = b'<row r="1"><c r="A1" t="s"><v>0</v></c></row>'


@pytest.mark.parametrize(
    ("content", "why"),
    [
        pytest.param(with_sheet(FIRST, strings=BOMB), "cannot be read", id="an XML bomb"),
        pytest.param(with_sheet(FIRST, strings=THIEF), "cannot be read", id="a file of ours"),
        pytest.param(with_sheet(FIRST, strings=b"<sst %s></sst>" % MAIN), "is damaged", id="no such text"),
        pytest.param(with_sheet(b'<row r="1"><c r="A1"><v>x</v></c></row>'), "is damaged", id="no number"),
        pytest.param(
            with_sheet(b'<row r="99999999"><c r="A1"><v>1</v></c></row>'), "no sheet has", id="no row"
        ),
        pytest.param(with_sheet(b"<row><c"), "is damaged", id="cut XML"),
        pytest.param(with_sheet(FIRST)[:4000], "cannot be read", id="cut ZIP"),
    ],
)
def test_a_workbook_that_is_broken_or_hostile_is_refused_in_a_sentence(content: bytes, why: str) -> None:
    with pytest.raises(SheetError, match=why):
        rows(content)


@pytest.mark.parametrize(
    ("name", "size"), [("xl/worksheets/sheet1.xml", 2**30 + 1), ("xl/sharedStrings.xml", 2**28)]
)
def test_a_workbook_that_claims_to_be_huge_is_not_even_opened(name: str, size: int) -> None:
    content = bytearray(with_sheet(FIRST, strings=b"<sst %s></sst>" % MAIN))
    entry = content.rindex(name.encode()) - 46  # in the directory at the end
    content[entry + 24 : entry + 28] = size.to_bytes(4, "little")
    with pytest.raises(SheetError, match="too large once it is unpacked"):
        rows(bytes(content))


def test_the_first_sheet_that_is_shown_is_read() -> None:
    book = openpyxl.Workbook()
    notes, people = book.worksheets[0], book.create_sheet("People")
    notes.sheet_state = "hidden"
    notes.append(["nobody"])
    people.append(["+60123456789"])
    content = io.BytesIO()
    book.save(content)
    assert rows(content.getvalue()) == [["+60123456789"]]


def test_numbers_of_a_workbook_keep_their_digits() -> None:
    content = with_sheet(
        b'<row r="1"><c r="A1"><v>6.0123456789E10</v></c><c r="B1" t="e"><v>#N/A</v></c></row>'
    )
    assert rows(content) == [["60123456789", "#N/A"]]


def test_reading_says_how_far_it_is() -> None:
    file = io.BytesIO(b"a,b\n" * 100_000)
    with opened(file, detect(file)) as sheet:
        shares = [sheet.share for _ in sheet]
    assert shares == sorted(shares)
    assert 0.3 < shares[50_000] < 0.7
    assert shares[-1] > 0.9


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "is empty"),
        (b" \n\n", "is empty"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "old Excel"),
        (b"PK\x03\x04 and then nothing", "not an Excel workbook"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\xff\0\xfe\x01\x02", "not a table"),
        (b"\x1f\x8b\x08\0" + bytes(range(256)) * 4, "not a table"),
        (TEXT.encode("utf-32"), "not a table"),
        (b"%PDF-1.7\n1 0 obj\n", "a PDF"),
        (b"\xef\xbb\xbf <html><table><tr><td>1</td></tr></table></html>", "a web page"),
        (b'[{"phone": "+60123456789"}]', "JSON"),
        (b"BEGIN:VCARD\nTEL:+60123456789\n", "a vCard"),
        (b'Name,Phone\n"Ann,+60123456789\nBen,+60123456780\n', "begins in row 2 is never closed"),
        (b"Name,Phone\nAnn,1\n" + b"x" * 200_000 + b",1\n", "in the middle of row 3"),
    ],
)
def test_what_is_no_table_is_refused_with_what_to_do(content: bytes, why: str) -> None:
    with pytest.raises(SheetError, match=why):
        rows(content)


@pytest.mark.parametrize("content", [b'Name,Size\nAnn,5" pipe\nBen,6" pipe\n', b'Name\n"Ann\nLee"\nBen,6"\n'])
def test_a_quote_that_is_none_is_left_alone(content: bytes) -> None:
    assert rows(content)[-1][0] == "Ben"


def test_a_stray_zero_is_dropped_wherever_it_is() -> None:
    assert rows(b"Name,Phone\nA\0nn,+60123456789\n")[1] == ["Ann", "+60123456789"]
    assert rows(b"Name,Phone\n" + b"Ben,1\n" * 20_000 + b"A\0nn,2\n")[-1] == ["Ann", "2"]


def test_another_zip_is_no_workbook() -> None:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("hello.txt", "hello")
    with pytest.raises(SheetError, match="not an Excel workbook"):
        rows(content.getvalue())


def test_a_field_without_an_end_is_named() -> None:
    file = io.BytesIO(b'a,b\n"' + b"x" * 200_000)
    found = Format(kind="csv", encoding="utf-8", delimiter=",")
    with opened(file, found) as sheet, pytest.raises(SheetError, match="breaks off"):
        list(sheet)


def rebuilt(content: bytes, **parts: bytes) -> bytes:
    """The workbook with other parts, packed; dots and slashes of their names are written as underscores."""
    source, made = zipfile.ZipFile(io.BytesIO(content)), io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for entry in source.infolist():
            key = entry.filename.replace("/", "_").replace(".", "_")
            archive.writestr(entry.filename, parts.pop(key, source.read(entry)))
    assert not parts
    return made.getvalue()


def test_styles_that_unpack_to_megabytes_are_not_read() -> None:
    """Some kilobytes would take minutes and gigabytes of the process that serves pages."""
    styles = b"<styleSheet %s><cellXfs>%s</cellXfs></styleSheet>" % (MAIN, b"<xf/>" * 400_000)
    content = rebuilt(with_sheet(FIRST), xl_styles_xml=styles)
    assert len(content) < 20_000
    with pytest.raises(SheetError, match="too large once it is unpacked"):
        rows(content)


@pytest.mark.parametrize(
    "row",
    [
        b"<row>%s</row>" % (b"<c/>" * 3_000_000),
        b'<row r="2"/>' + b'<row r="1"/>' * 1_000_000,
    ],
    ids=["one row without an end", "rows that are none"],
)
def test_rows_that_never_come_are_not_waited_for(row: bytes) -> None:
    with pytest.raises(SheetError, match="too large once it is unpacked"):
        rows(with_sheet(row))


def test_a_cell_far_to_the_right_makes_no_row_wider_than_it_can_be() -> None:
    found = rows(with_sheet(b'<row r="1"><c r="XFD1"><v>1</v></c></row>'))
    assert len(found[0]) == MOST_COLUMNS + 1


def test_thousands_of_sheets_that_are_one_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    content = with_sheet(b'<row r="1"><c r="A1"><v>1</v></c></row>')
    named = zipfile.ZipFile(io.BytesIO(content)).read("xl/workbook.xml")
    sheet = re.search(rb"<sheet .*?/>", named)
    assert sheet is not None
    many = named.replace(sheet[0], sheet[0] * 3_000)
    opened_parts = []
    original = zipfile.ZipFile.open

    def counted(self: zipfile.ZipFile, name: Any, *args: Any, **more: Any) -> Any:
        opened_parts.append(str(getattr(name, "filename", name)))
        return original(self, name, *args, **more)

    monkeypatch.setattr(zipfile.ZipFile, "open", counted)
    assert rows(rebuilt(content, xl_workbook_xml=many)) == rows(content)
    assert sum("sheet1" in part for part in opened_parts) < 20


def test_a_workbook_of_charts_alone_is_refused() -> None:
    book = openpyxl.Workbook()
    book.create_chartsheet("Chart")
    book.remove(book.worksheets[0])
    content = io.BytesIO()
    book.save(content)
    with pytest.raises(SheetError, match="no sheet with a table"):
        rows(content.getvalue())


def test_a_line_that_is_longer_than_any_table_is_refused() -> None:
    with pytest.raises(SheetError, match="longer than any row"):
        rows(b"Name,Phone\n" + b"," * 2_000_000 + b"\n")


def test_millions_of_texts_in_a_small_part_are_not_read_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    content = with_sheet(
        b"<row><c><v>1</v></c></row>", strings=b"<sst " + MAIN + b">" + b"<si/>" * 1000 + b"</sst>"
    )
    assert detect(io.BytesIO(content)) == Format(kind="xlsx")
    monkeypatch.setattr(workbooks, "LONGEST_OPENING", 0.0)
    with pytest.raises(SheetError, match="too large once it is unpacked"):
        detect(io.BytesIO(content))
