"""The board and the alerts: all that they name is measured, and all that is measured is explained."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from django.conf import settings

from activity import counters
from activity.metrics.page import Everything
from tests.config.programs import PROJECT
from tests.deploy.installed import check

MONITORING = PROJECT / "deploy" / "monitoring"
ALERTS, BOARD = MONITORING / "alerts.yml", MONITORING / "grafana.json"
PAGE = PROJECT / "docs" / "monitoring.md"
METRIC = re.compile(r"\bpaceline_[a-z_]+")
RECORDED = re.compile(r"\bpaceline:[a-z_]+")


def rules() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]


def board() -> list[dict[str, Any]]:
    panels: list[dict[str, Any]] = json.loads(BOARD.read_text())["panels"]
    return panels


def expressions() -> Iterator[str]:
    yield from (rule["expr"] for rule in rules())
    yield from (target["expr"] for panel in board() for target in panel.get("targets", ()))


def counted() -> set[str]:
    """Return the counters that the code can count."""
    apps = ("accounts", "activity", "delivery", "reminders")
    sources = [path.read_text() for app in apps for path in (settings.BASE_DIR / app).rglob("*.py")]
    told = {
        name for text in sources for name in re.findall(r'(?:counters\.tell\(|happened\[)\s*"(\w+)"', text)
    }
    tallied = {counters.MESSAGES, counters.LEASES_LOST, counters.LIMITER_REBUILDS}
    return {f"paceline_{name}_total" for name in told | tallied}


@pytest.fixture
def measured(db: None, redis: object) -> set[str]:
    """Every metric that can be read."""
    families = {family.name: family.type for family in Everything().collect()}
    return {name for name, kind in families.items() if kind == "gauge"} | counted()


def test_the_board_and_the_alerts_name_only_what_is_measured(measured: set[str]) -> None:
    assert {name for text in expressions() for name in METRIC.findall(text)} - measured == set()


def test_what_they_compute_from_is_recorded() -> None:
    recorded = {rule["record"] for rule in rules() if "record" in rule}
    assert {name for text in expressions() for name in RECORDED.findall(text)} <= recorded


def test_all_that_is_measured_is_explained_and_nothing_else(measured: set[str]) -> None:
    pages = PAGE.read_text() + (PROJECT / "docs" / "conversations.md").read_text()
    explained = set(re.findall(r"^\| `(paceline_\w+)`", pages, re.MULTILINE))
    assert explained == measured


def test_every_alert_is_explained_and_says_what_to_do() -> None:
    alerts = {rule["alert"]: rule for rule in rules() if "alert" in rule}
    assert set(re.findall(r"^\| `(Paceline\w+)`", PAGE.read_text(), re.MULTILINE)) == set(alerts)
    for rule in alerts.values():
        assert set(rule["annotations"]) == {"summary", "action"}
        assert rule["labels"]["severity"] in {"critical", "warning", "info"}


def test_the_panels_of_the_board_do_not_overlap() -> None:
    places: set[tuple[int, int]] = set()
    for panel in board():
        at = panel["gridPos"]
        own = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert not own & places, panel["title"]
        assert at["x"] + at["w"] <= 24
        places |= own
    assert len({panel["id"] for panel in board()}) == len(board())


def test_prometheus_accepts_the_rules_and_the_configuration() -> None:
    for arguments in (
        ["check", "rules", str(ALERTS)],
        ["check", "config", "--syntax-only", str(MONITORING / "prometheus.yml")],
    ):
        checked = check("promtool", *arguments)
        assert checked.returncode == 0, checked.stdout + checked.stderr
