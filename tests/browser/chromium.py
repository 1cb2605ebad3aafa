"""Finds the browser that the tests drive."""

import os
import shutil

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
MISSING = "There is no Chromium on the PATH."
HOW_TO_GET_IT = (
    f"The browser tests were skipped. {MISSING} Install it, and run the tests again: `apt-get install chromium` on "
    "Debian, `dnf install chromium` on Fedora; Google Chrome will do under the name google-chrome."
)


def chromium() -> str:
    """Return the browser's program; without one the test is skipped, or fails where a browser is required."""
    for name in NAMES:
        if path := shutil.which(name):
            return path
    if os.environ.get("BROWSER_REQUIRED") == "1":
        pytest.fail(f"BROWSER_REQUIRED is set. {MISSING}")
    pytest.skip(MISSING)
