"""The units for systemd: systemd reads them, and they run the commands that the Procfile runs."""

import re
import sys
from pathlib import Path

import pytest
from django.conf import settings

from tests.config.programs import PROJECT
from tests.deploy.installed import check

UNITS = PROJECT / "deploy" / "systemd"
INSTALLED = "/srv/paceline"
PROGRAMS = {
    "web": "paceline-web.service",
    "worker": "paceline-worker@.service",
    "beat": "paceline-beat.service",
}


def values(unit: str, name: str) -> list[str]:
    return re.findall(rf"^{name}=(.*)$", (UNITS / unit).read_text(), re.MULTILINE)


def words(command: str) -> list[str]:
    """Return a command's words without what differs: where the program lies, the port, the worker's own name."""
    command = re.sub(r"^\S*/", "", command)
    command = re.sub(r" --hostname=\S+", "", command)
    return re.sub(
        r"\$PORT|\b8000\b", "PORT", command.replace("${WORKER_THREADS:-64}", "${WORKER_THREADS}")
    ).split()


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_unit_runs_what_the_procfile_runs(program: str) -> None:
    lines = dict(line.split(": ", 1) for line in (PROJECT / "Procfile").read_text().splitlines())
    [command] = values(PROGRAMS[program], "ExecStart")
    assert command.startswith(f"{INSTALLED}/.venv/bin/")
    assert words(command) == words(lines[program])


def test_the_name_of_a_worker_is_its_share_and_keeps_workers_of_one_machine_apart() -> None:
    """systemd writes %I with the dash of the name as a slash: paceline-worker@1-2 has the share 1/2."""
    assert "ACCOUNT_SHARE=%I" in values(PROGRAMS["worker"], "Environment")
    assert "--hostname=worker-%i@%%h" in values(PROGRAMS["worker"], "ExecStart")[0]


def test_a_worker_has_the_time_to_finish_what_is_on_its_way() -> None:
    [seconds] = values(PROGRAMS["worker"], "TimeoutStopSec")
    assert int(seconds) > settings.CELERY_WORKER_SOFT_SHUTDOWN_TIMEOUT + 20


@pytest.mark.parametrize("unit", PROGRAMS.values())
def test_a_unit_starts_again_belongs_to_the_target_and_has_few_rights(unit: str) -> None:
    assert values(unit, "Restart") == ["always"]
    assert values(unit, "PartOf") == values(unit, "WantedBy") == ["paceline.target"]
    assert values(unit, "User") == ["paceline"]
    assert (values(unit, "NoNewPrivileges"), values(unit, "ProtectSystem")) == (["true"], ["strict"])


def test_systemd_finds_nothing_wrong(tmp_path: Path) -> None:
    for unit in UNITS.iterdir():
        text = unit.read_text().replace(f"{INSTALLED}/.venv/bin", str(Path(sys.prefix) / "bin"))
        (tmp_path / unit.name).write_text(text.replace(f"file://{INSTALLED}", f"file://{PROJECT}"))
    checked = check("systemd-analyze", "verify", "--man=no", *sorted(map(str, tmp_path.iterdir())))
    ours = [line for line in checked.stderr.splitlines() if "paceline" in line]
    assert (checked.returncode, ours) == (0, []), checked.stderr
