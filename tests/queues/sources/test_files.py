"""Files in tables: a row that has some is refused with a sentence, and never sent without them. Pure."""

import pytest

from queues.entries import EntryError
from queues.sources.mapping import Columns, Means, entry_of, guess
from queues.sources.notion_values import cell_of
from queues.sources.tables import Cell, Column, Holds, Schema, TableRow

CHOSEN = Columns(
    reads={Means.ADDRESS: "a", Means.TEXT: "t", Means.FILES: "f"},
    titles={"a": "To", "t": "Text", "f": "Files"},
)


def row(**cells: Cell) -> TableRow:
    return TableRow(
        place="2", own_id="1", cells={"a": Cell(text="anna@example.com"), "t": Cell(text="Hi")} | cells
    )


def test_a_row_with_a_file_is_refused_with_what_to_do() -> None:
    with pytest.raises(
        EntryError, match=r"“plan\.pdf” is a file\. Files of a table are not sent: empty this cell"
    ):
        entry_of(row(f=Cell(text="plan.pdf")), CHOSEN, own_id="1", zone="UTC")


@pytest.mark.parametrize("cells", [{}, {"f": Cell()}, {"f": Cell(text=" ")}])
def test_a_row_without_one_is_taken(cells: dict[str, Cell]) -> None:
    assert entry_of(row(**cells), CHOSEN, own_id="1", zone="UTC").text == "Hi"


def test_notions_files_are_read_by_their_names() -> None:
    files = [
        {"name": "plan.pdf", "type": "file", "file": {"url": "https://s3.example/x"}},
        {"name": "map.png"},
    ]
    assert cell_of({"type": "files", "files": files}).text == "plan.pdf, map.png"
    assert cell_of({"type": "files", "files": []}).text == ""


@pytest.mark.parametrize("title", ["Files", "file", "Attachment", "attachments", "Files & media"])
def test_such_columns_are_guessed(title: str) -> None:
    columns = (Column(id="a", title="To", holds=Holds.TEXT), Column(id="f", title=title, holds=Holds.FIXED))
    assert guess(Schema(title="Mails", columns=columns), with_own_id=False).reads[Means.FILES] == "f"
