"""The shape of the house: few modules in a room, each room says what it is for, and tests stand beside their code."""

from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
APPS = (
    "accounts",
    "activity",
    "api",
    "audit",
    "benchmarks",
    "config",
    "delivery",
    "notices",
    "people",
    "queues",
    "reminders",
    "sandbox",
)
MOST = 22  # modules in one room: about twenty
NO_ROOMS = {"__pycache__", "migrations", "commands", "management", "templatetags", "formats", "en"}


def rooms() -> list[Path]:
    folders = [PROJECT / app for app in APPS] + [
        folder for app in APPS for folder in (PROJECT / app).rglob("*") if folder.is_dir()
    ]
    return [
        folder
        for folder in folders
        if not NO_ROOMS & set(folder.relative_to(PROJECT).parts) and any(folder.glob("*.py"))
    ]


def name_of(room: Path) -> str:
    return room.relative_to(PROJECT).as_posix()


@pytest.mark.parametrize("room", rooms(), ids=name_of)
def test_a_room_holds_about_twenty_modules(room: Path) -> None:
    modules = [module.name for module in room.glob("*.py") if module.name != "__init__.py"]
    assert len(modules) <= MOST


@pytest.mark.parametrize("room", rooms(), ids=name_of)
def test_a_room_says_what_it_is_for(room: Path) -> None:
    assert (room / "__init__.py").read_text().startswith(('"""', "import", "from"))


def test_every_folder_of_tests_mirrors_a_room() -> None:
    strangers = [
        name_of(folder)
        for app in APPS
        for folder in (PROJECT / "tests" / app).rglob("*")
        if folder.is_dir()
        and folder.name != "__pycache__"
        and not (PROJECT / folder.relative_to(PROJECT / "tests")).is_dir()
    ]
    assert strangers == []
