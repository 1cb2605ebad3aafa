"""Media and imported lists are nobody else's to read."""

import stat
from pathlib import Path

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage

from config.private_files import make_private


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_new_files_and_folders_are_private() -> None:
    name = default_storage.save("private/list.csv", ContentFile(b"a,b"))
    path = Path(default_storage.path(name))
    assert (mode(path), mode(path.parent)) == (0o600, 0o700)


def test_old_files_are_closed_at_the_start(tmp_path: Path) -> None:
    folder = tmp_path / "media"
    (folder / "old").mkdir(parents=True)
    (folder / "old" / "list.csv").write_text("a,b")
    for path, open_to_all in ((folder, 0o755), (folder / "old", 0o775), (folder / "old" / "list.csv", 0o644)):
        path.chmod(open_to_all)
    outside = tmp_path / "outside"
    outside.write_text("x")
    outside.chmod(0o644)
    (folder / "link").symlink_to(outside)
    make_private(folder).join(30)
    assert [mode(folder), mode(folder / "old"), mode(folder / "old" / "list.csv")] == [0o700, 0o700, 0o600]
    assert mode(outside) == 0o644  # a link leads away from what is ours


def test_a_folder_that_is_not_there_yet_is_no_error(tmp_path: Path) -> None:
    make_private(tmp_path / "none").join(30)


def test_what_is_stricter_already_stays(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "strict").touch(0o400)
    make_private(tmp_path).join(30)
    assert mode(tmp_path / "strict") == 0o400
