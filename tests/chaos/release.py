"""Unpacks the release before this one from the history of this checkout, so that its programs can be run."""

import subprocess
import sys
import tarfile
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path

from tests.chaos.programs import PROJECT


class NoHistoryError(Exception):
    """Raised where the release cannot be had here; its words say why."""


def unpack(version: str, folder: Path) -> Path:
    """Write the files of a release into `folder`, and return it."""
    commit = _commit(version)
    with tarfile.open(fileobj=BytesIO(_git("archive", commit))) as files:
        files.extractall(folder, filter="data")
    return folder


def manage(project: Path, *words: str, env: Mapping[str, str]) -> None:
    """Run a command of `manage.py` of one release."""
    subprocess.run([sys.executable, "manage.py", *words], cwd=project, env=dict(env), check=True)


def _commit(version: str) -> str:
    """Return the commit that made a release: the first one with its version."""
    found = _git("log", "--reverse", "--format=%H", f'-Sversion = "{version}"', "--", "pyproject.toml")
    commits = found.decode().split()
    if not commits:
        raise NoHistoryError(
            f"The history of this checkout does not reach back to {version}: fetch all of it, with "
            "`git fetch --unshallow`."
        )
    return commits[0]


def _git(*words: str) -> bytes:
    try:
        return subprocess.run(["git", *words], cwd=PROJECT, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise NoHistoryError(
            "This is no checkout of git, so the release before cannot be had here."
        ) from error
