"""Guesses of the meanings of columns, and the recipients that rows become."""

import pytest

from accounts.imports.columns import Column, guess, variable_name
from accounts.imports.rows import Reading, read_row, split_tags

PHONE = Column(title="Phone", means="address")
NAME = Column(title="Name", means="name")
TAGS = Column(title="Tags", means="tags")
CITY = Column(title="City", means="variable", variable="city")


def meanings(*rows: list[str], region: str = "") -> tuple[bool, str, list[str]]:
    found = guess(rows, region=region)
    return found.header, found.channel, [column.variable or column.means for column in found.columns]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([["Phone", "Name"], ["+60123456789", "Ann"]], (True, "whatsapp", ["address", "name"])),
        ([["Name", "E-Mail"], ["Ann", "ann@example.com"]], (True, "email", ["name", "address"])),
        ([["Name", "Telefonnummer"], ["Ann", "0151 1"]], (True, "whatsapp", ["name", "address"])),
        ([["who", "where"], ["Ann", "https://linkedin.com/in/ann-lee"]], (True, "linkedin", ["who", "address"])),
        ([["Room"], ["#team:example.org"]], (True, "matrix", ["address"])),
        ([["group_id", "Group"], ["120363000000000001@g.us", "Choir"]], (True, "whatsapp", ["address", "name"])),
        # no titles: the first row is somebody already
        ([["+60123456789", "Ann"], ["+60123456780", "Ben"]], (False, "whatsapp", ["address", ""])),
        # the content decides between two columns with a fitting title
        ([["Number", "Phone"], ["7", "+60123456789"]], (True, "whatsapp", ["number", "address"])),
        ([["First name", "", "Tags", "Phone"], ["A", "x", "t", "+60123456789"]],
         (True, "whatsapp", ["first_name", "", "tags", "address"])),
        # nothing looks like an address
        ([["a", "b"], ["x", "y"]], (True, "whatsapp", ["a", "b"])),
        ([], (False, "whatsapp", [])),
    ],
)  # fmt: skip
def test_columns_are_guessed(rows: list[list[str]], expected: tuple[bool, str, list[str]]) -> None:
    assert meanings(*rows) == expected


def test_local_numbers_are_seen_where_a_country_is_known() -> None:
    rows = [["Ann", "012-345 6789"], ["Ben", "012-345 6780"]]
    assert meanings(*rows, region="MY") == (False, "whatsapp", ["", "address"])


def test_rows_of_uneven_length_are_one_table() -> None:
    assert meanings(["Phone"], ["+60123456789", "x"]) == (True, "whatsapp", ["address", ""])


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("First name", "first_name"),
        ("Größe (cm)", "größe_cm"),
        ("name", "name_"),
        ("  ", ""),
        ("E-Mail!", "e_mail"),
    ],
)
def test_a_title_becomes_a_variable(title: str, name: str) -> None:
    assert variable_name(title) == name


READING = Reading(channel="whatsapp", region="MY", columns=[PHONE, NAME, TAGS, CITY])


def test_a_row_becomes_a_recipient() -> None:
    row = read_row(2, ["012-345 6789", " Ann Lee ", "Parents; Choir,Parents", "Ipoh"], READING)
    assert row is not None
    assert (row.number, row.address, row.kind, row.name) == (2, "+60123456789", "person", "Ann Lee")
    assert (row.tags, row.fields, row.problem) == (["Parents", "Choir"], {"city": "Ipoh"}, "")


def test_short_rows_are_filled_and_empty_ones_are_none() -> None:
    row = read_row(2, ["+60123456789"], READING)
    assert row is not None
    assert (row.name, row.fields, row.tags) == ("", {}, [])
    assert read_row(3, ["", "  ", ""], READING) is None


def test_the_mark_against_formulas_is_taken_off_again() -> None:
    row = read_row(2, ["'+60123456789", "'=SUM(A1)", "", "'tis"], READING)
    assert row is not None
    assert (row.address, row.name, row.fields) == ("+60123456789", "=SUM(A1)", {"city": "'tis"})


@pytest.mark.parametrize(
    ("cells", "why"),
    [
        (["", "Ann"], "The address is empty."),
        (["nobody", "Ann"], "is not a phone number"),
        (["+60123456789", "x" * 201], "The name is longer than 200"),
        (["+60123456789", "", "t" * 61], "The tag “tttttttttttttttttttt…” is longer than 60"),
        (["+60123456789", "", "", "c" * 1001], "“city” is longer than 1,000"),
    ],
)
def test_a_row_that_does_not_fit_says_why(cells: list[str], why: str) -> None:
    row = read_row(2, cells, READING)
    assert row is not None
    assert why in row.problem
    assert row.address == ""


def test_tags_are_parted_by_any_usual_mark() -> None:
    assert split_tags("a, b;c | d,,a") == ["a", "b", "c", "d"]
