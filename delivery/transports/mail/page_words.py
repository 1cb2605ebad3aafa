"""Extracts the words of an HTML e-mail, in time that grows linearly with its length.

Python's own `html.parser` is not used: up to Python 3.13 a hundred kilobytes of "<a " keep it busy for minutes. Here
each search begins where the last one ended, and a search that found nothing is not repeated.
"""

import re
from html import unescape

BREAKS = frozenset(
    {"br", "p", "div", "li", "tr", "table", "ul", "ol", "h1", "h2", "h3", "h4", "blockquote", "pre"}
)
UNSEEN = frozenset({"style", "script", "head", "title", "template"})
RULE = "________________"  # a horizontal line in plain text
_NAME = re.compile(r"/?[A-Za-z][A-Za-z0-9]{0,20}")
_IN_TAG = re.compile(r"[>\"']")
_BLANKS = re.compile(r"[ \t\r\f\v\xa0]+")


class PageReader:
    """Reads one page from its beginning to its end."""

    def __init__(self, page: str) -> None:
        self._page = page
        self._absent: set[str] = set()  # searches that find nothing any more
        self._lines: list[list[str]] = [[]]
        self._marks: list[str] = [""]  # the prefix of each line
        self._quoted = 0
        self._unseen = ""

    def words(self) -> str:
        """Return the text, a line for each block, quotations marked with ">" as in plain e-mails."""
        position = 0
        while (start := self._find("<", position)) >= 0:
            self._take(self._page[position:start])
            position = self._tag(start)
        self._take(self._page[position:])
        lines = (
            (mark, " ".join("".join(line).split()))
            for mark, line in zip(self._marks, self._lines, strict=True)
        )
        return "\n".join(f"{mark}{line}" for mark, line in lines).strip()

    def _tag(self, start: int) -> int:
        """Read the tag at `start`, and return where the page continues behind it."""
        if self._page.startswith("<!--", start):
            return self._behind("-->", start + 4)
        name = _NAME.match(self._page, start + 1)
        if name is None and not self._page.startswith(("<!", "<?", "</"), start):
            self._take("<")
            return start + 1
        self._meet(name[0].lower() if name else "")
        return self._end_of_tag(name.end() if name else start + 1)

    def _end_of_tag(self, position: int) -> int:
        """Return where the tag ends; a ">" inside quotes does not end it."""
        begin = position
        while (found := _IN_TAG.search(self._page, position)) is not None:
            if found[0] == ">":
                return found.end()
            closing = self._find(found[0], found.end())
            if closing < 0:
                return self._behind(">", begin)
            position = closing + 1
        return len(self._page)

    def _meet(self, name: str) -> None:
        closes, name = name.startswith("/"), name.removeprefix("/")
        if name in UNSEEN and closes == (self._unseen == name):
            self._unseen = "" if closes else self._unseen or name
        if self._unseen:
            return
        if name == "blockquote":
            self._quoted = max(self._quoted + (-1 if closes else 1), 0)
        if name in BREAKS:
            self._break()
        elif name == "hr":
            self._break()
            self._take(RULE)
            self._break()

    def _break(self) -> None:
        self._lines.append([])
        self._marks.append("> " if self._quoted else "")

    def _take(self, text: str) -> None:
        if text and not self._unseen:
            self._lines[-1].append(_BLANKS.sub(" ", unescape(text)).replace("\n", " "))

    def _behind(self, what: str, position: int) -> int:
        found = self._find(what, position)
        return found + len(what) if found >= 0 else len(self._page)

    def _find(self, what: str, position: int) -> int:
        if what in self._absent:
            return -1
        found = self._page.find(what, position)
        if found < 0:
            self._absent.add(what)
        return found


def words_of(page: str) -> str:
    """Return the words of an HTML page as lines of plain text."""
    return PageReader(page).words()
