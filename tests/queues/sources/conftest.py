"""Notion and Google on loopback, for every test of sources."""

from collections.abc import Iterator

import pytest
from pytest_django import Settings

from tests.queues.sources.notion_service import NotionService
from tests.queues.sources.notion_service import notion as run_notion
from tests.queues.sources.sheets_service import SheetsService
from tests.queues.sources.sheets_service import sheets as run_sheets


@pytest.fixture
def notion(settings: Settings) -> Iterator[NotionService]:
    """A Notion with an empty database, at which this installation asks."""
    with run_notion() as service:
        settings.NOTION_URL = service.url
        yield service


@pytest.fixture
def sheets(settings: Settings) -> Iterator[SheetsService]:
    """A Google with an empty sheet."""
    with run_sheets() as service:
        settings.GOOGLE_SHEETS_URL = settings.GOOGLE_TOKENS_URL = service.url
        yield service
