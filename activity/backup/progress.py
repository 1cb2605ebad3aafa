"""Shows how far a long command is: a bar on a terminal, a line now and then elsewhere."""

from typing import TextIO

WIDTH = 30
STEP = 10  # percent between two lines, where there is no terminal


class Progress:
    """A bar for one step after another. What is counted may be more than was expected."""

    def __init__(self, out: TextIO | None) -> None:
        self.out = out
        self.terminal = out is not None and out.isatty()
        self.title, self.total, self.done, self.shown = "", 0, 0, -1

    def begin(self, title: str, total: int) -> None:
        self.end()
        self.title, self.total, self.done, self.shown = title, total, 0, -1
        self._show("")

    def more(self, what: str, count: int) -> None:
        self.done += count
        self._show(what)

    def end(self) -> None:
        if self.title and self.terminal and self.out:
            self.out.write("\n")
        self.title = ""

    def _show(self, what: str) -> None:
        percent = 100 if not self.total else min(99, 100 * self.done // self.total)
        step = percent if self.terminal else percent // STEP * STEP
        if self.out is None or step == self.shown:
            return
        self.shown = step
        if self.terminal:
            bar = "#" * (WIDTH * percent // 100)
            self.out.write(f"\r{self.title} [{bar:<{WIDTH}}] {percent:3} %  {what[:40]:<40}")
        else:
            self.out.write(f"{self.title}: {percent} %\n")
        self.out.flush()
