"""docs/adding-a-transport.md is right: its transport passes the contract as its own test states it."""

import re
import sys
from types import ModuleType

import pytest

from delivery import transports
from tests.config.programs import PROJECT

PAGE = PROJECT / "docs" / "adding-a-transport.md"
TRANSPORT, TEST = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)

sys.modules.setdefault("delivery.transports.parrot", ModuleType("delivery.transports.parrot"))
parrot = sys.modules.setdefault(
    "delivery.transports.parrot.send", ModuleType("delivery.transports.parrot.send")
)
exec(compile(TRANSPORT, PAGE, "exec"), parrot.__dict__)
exec(compile(TEST, PAGE, "exec"), globals())


@pytest.fixture(autouse=True)
def among_the_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transports, "_KINDS", (*transports._KINDS, parrot.ParrotTransport))


def test_it_takes_about_a_hundred_lines() -> None:
    assert len(TRANSPORT.splitlines()) < 100
    assert len(TEST.splitlines()) < 100
