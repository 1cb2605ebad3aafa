"""One lab for all tests of this folder, and what its programs said when one fails."""

import sys
from collections.abc import Generator, Iterator

import pytest

from tests.chaos.lab import Lab

FAILED = pytest.StashKey[bool]()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """These share the lab and both cores, so one process runs them all, one after the other."""
    for item in items:
        if "tests/chaos/" in item.nodeid:
            item.add_marker(pytest.mark.chaos)
            item.add_marker(pytest.mark.xdist_group("chaos"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.when == "call":
        item.stash[FAILED] = report.failed
    return report


@pytest.fixture(scope="session")
def whole_lab() -> Iterator[Lab]:
    lab = Lab()
    yield lab
    lab.end()


@pytest.fixture
def lab(whole_lab: Lab, request: pytest.FixtureRequest) -> Iterator[Lab]:
    yield whole_lab
    if request.node.stash.get(FAILED, False):
        sys.stdout.write(whole_lab.said())
    whole_lab.end_adopted()
