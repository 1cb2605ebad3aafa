"""docs/configuration.md and the settings say the same, and every index is explained."""

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest
from django.apps import apps

from config.settings import env
from tests.config.programs import PROJECT
from tests.config.settings_source import Read, numbers, reads

DOCUMENT = PROJECT / "docs" / "configuration.md"
INDEXES = PROJECT / "docs" / "decisions" / "0003-indexes.md"
CHANGES = PROJECT / "CHANGELOG.md"
ELSEWHERE = "## Read outside the settings"
PROGRAMS = [
    *(PROJECT / "config").rglob("*.py"),
    *(PROJECT / "sandbox").glob("*.py"),
    PROJECT / "manage.py",
    PROJECT / "Procfile",
    PROJECT / "compose.yaml",
    PROJECT / "tests" / "browser" / "chromium.py",
    PROJECT / "tests" / "chaos" / "pooler.py",
    PROJECT / "tests" / "delivery" / "transports" / "postfix.py",
    PROJECT / "tests" / "deploy" / "nginx.py",
]
NOT_OURS = {"PATH", "MAKELEVEL", "DJANGO_SETTINGS_MODULE", "DJANGO_ALLOW_ASYNC_UNSAFE"}
OURS = ("accounts", "reminders", "people", "queues", "delivery", "activity", "audit", "api", "notices")


@cache
def rows(*, elsewhere: bool = False) -> Mapping[str, list[str]]:
    """The rows of the tables by the name in their first cell."""
    settings, outside = DOCUMENT.read_text().split(ELSEWHERE)
    lines = re.findall(r"^\| `(\w+)` \|(.*)\|$", outside if elsewhere else settings, re.MULTILINE)
    return {name: [cell.strip() for cell in cells.split("|")] for name, cells in lines}


def as_written(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def test_every_name_that_is_read_is_documented_and_no_other() -> None:
    assert set(rows()) == set(reads())


def test_the_source_tells_all_names_that_are_read() -> None:
    assert env.names <= set(reads())


def test_no_name_is_documented_twice() -> None:
    names = re.findall(r"^\| `(\w+)` \|", DOCUMENT.read_text(), re.MULTILINE)
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("read", [pytest.param(read, id=read.name) for read in numbers()])
def test_the_default_and_the_range_are_as_documented(read: Read) -> None:
    default, span, *_ = rows()[read.name]
    assert default == as_written(read.default)
    assert span == f"{as_written(read.low)} to {as_written(read.high)}"


@pytest.mark.parametrize(
    "name", [name for name, read in reads().items() if read.default and read.low is None]
)
def test_the_default_word_is_as_documented(name: str) -> None:
    assert rows()[name][0] == f"`{reads()[name].default}`"


@pytest.mark.parametrize("name", sorted(rows(elsewhere=True)))
def test_a_name_documented_as_read_elsewhere_is_read_somewhere(name: str) -> None:
    assert any(re.search(rf"\b{name}\b", source.read_text()) for source in PROGRAMS)


def test_every_name_read_elsewhere_is_documented() -> None:
    text = "\n".join(source.read_text() for source in PROGRAMS if source.suffix == ".py")
    read = set(re.findall(r"""(?:environ|env)(?:\.get)?[(\[]"([A-Z_]+)\"""", text))
    assert read - NOT_OURS - {*rows(), *rows(elsewhere=True)} == set()


@pytest.mark.parametrize(
    "index",
    [
        index.name
        for app in OURS
        for model in apps.get_app_config(app).get_models()
        for index in model._meta.indexes
    ],
)
def test_it_is_written_down_which_query_an_index_serves(index: str) -> None:
    assert f"`{index}`" in INDEXES.read_text()


PAGES = [*PROJECT.glob("*.md"), *(PROJECT / "docs").rglob("*.md")]


@pytest.mark.parametrize(
    "page", [pytest.param(page, id=str(page.relative_to(PROJECT))) for page in sorted(PAGES)]
)
def test_links_between_the_pages_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_the_version_of_the_package_is_the_newest_one_of_the_changes() -> None:
    package = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["version"]
    released = re.findall(r"^## (\d+\.\d+\.\d+) - \d{4}-\d\d-\d\d$", CHANGES.read_text(), re.MULTILINE)
    assert released[0] == package
    assert released == sorted(released, key=lambda version: [int(part) for part in version.split(".")])[::-1]


def test_every_change_stands_under_a_version_in_one_line() -> None:
    first, *sections = re.split(r"^## ", CHANGES.read_text(), flags=re.MULTILINE)
    lines = [line for section in sections for line in section.splitlines()[1:] if line]
    assert "\n- " not in first
    assert [line for line in lines if not re.match(r"- \S|### (Added|Changed|Fixed)$", line)] == []


def test_a_number_stands_for_one_decision() -> None:
    """A number may be missing: several people write decisions at the same time."""
    pages = sorted(INDEXES.parent.glob("*.md"))
    numbers = [int(page.name[:4]) for page in pages]
    assert numbers == sorted(set(numbers))
    titles = [page.read_text().partition("\n")[0] for page in pages]
    assert [int(title.split()[1].rstrip(".")) for title in titles] == numbers


def test_the_glossary_has_each_word_once_in_order() -> None:
    for table in (PROJECT / "docs" / "glossary.md").read_text().split("\n## ")[1:]:
        words = [word.casefold() for word in re.findall(r"^\| ([^|]+) \| [^|]+\. \|$", table, re.MULTILINE)]
        assert len(words) == table.count("\n| ") - 1
        assert words == sorted(set(words))
