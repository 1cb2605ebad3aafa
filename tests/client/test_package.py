"""The client is installed alone, as on a computer without Paceline."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from tests.config.programs import PROJECT


def test_the_client_is_a_program_of_its_own(tmp_path: Path) -> None:
    shutil.copytree(PROJECT / "client", tmp_path / "source", ignore=shutil.ignore_patterns("__pycache__"))
    place = tmp_path / "installed"
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
    ]
    subprocess.run([*pip, "--target", str(place), str(tmp_path / "source")], check=True, timeout=120)
    environment = {**os.environ, "PYTHONPATH": str(place), "PACELINE_LOGIN_FILE": str(tmp_path / "none")}
    program = [sys.executable, str(place / "bin" / "paceline")]
    helped = subprocess.run(
        [*program, "--help"], check=False, env=environment, cwd=tmp_path, capture_output=True, text=True
    )
    assert "runs" in helped.stdout, helped.stderr
    me = subprocess.run(
        [*program, "me"], check=False, env=environment, cwd=tmp_path, capture_output=True, text=True
    )
    assert (me.returncode, "paceline login" in me.stderr) == (1, True)


def test_the_client_has_every_package_and_the_version_of_paceline() -> None:
    own = tomllib.loads((PROJECT / "client" / "pyproject.toml").read_text())
    folders = {file.parent.relative_to(PROJECT) for file in (PROJECT / "client").rglob("*.py")}
    assert set(own["tool"]["setuptools"]["packages"]) == {".".join(folder.parts) for folder in folders}
    whole = tomllib.loads((PROJECT / "pyproject.toml").read_text())
    assert own["project"]["version"] == whole["project"]["version"]
    assert set(own["project"]["dependencies"]) <= set(whole["project"]["dependencies"])
