"""The words that a person reads on a machine without a browser."""

from pathlib import Path
from unittest.mock import Mock

import pytest

from tests.browser.chromium import MISSING, chromium
from tests.conftest import pytest_terminal_summary


@pytest.fixture(autouse=True)
def no_browser(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))


def test_its_tests_are_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BROWSER_REQUIRED", raising=False)
    with pytest.raises(pytest.skip.Exception, match=MISSING):
        chromium()


def test_they_fail_where_a_browser_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROWSER_REQUIRED", "1")
    with pytest.raises(pytest.fail.Exception, match=MISSING):
        chromium()


@pytest.mark.parametrize(
    ("reasons", "lines"), [([MISSING, MISSING], 1), (["There is no nginx here."], 0), ([], 0)]
)
def test_the_summary_says_once_how_to_get_a_browser(reasons: list[str], lines: int) -> None:
    reporter = Mock(
        stats={"skipped": [Mock(longrepr=("a_test.py", 1, f"Skipped: {why}")) for why in reasons]}
    )
    pytest_terminal_summary(reporter)
    assert reporter.write_line.call_count == lines
    assert all("apt-get install chromium" in call.args[0] for call in reporter.write_line.call_args_list)
