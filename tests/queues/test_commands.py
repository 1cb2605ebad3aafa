"""`manage.py read_sources` reads now, and says what was read."""

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from accounts.models import User
from queues.models import Item, Source
from tests.factories import QueueFactory, SourceFactory
from tests.queues.sources.conftest import sheets  # noqa: F401 - a fixture
from tests.queues.sources.sheets_service import SheetsService
from tests.queues.sources.table import fill_sheet, line, sheet_source

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis")]


def read(*arguments: str) -> str:
    said = StringIO()
    call_command("read_sources", *arguments, stdout=said)
    return said.getvalue()


def test_it_reads_all_sources_that_are_on(sheets: SheetsService, owner: User) -> None:  # noqa: F811
    fill_sheet(sheets, line(1), line(2, To="nobody"))
    sheet_source(sheets, QueueFactory.create(owner=owner, by_email=True), by=owner)
    SourceFactory.create(off=True)
    (found,) = json.loads(read("--json"))
    assert (found["outcome"], found["rows"], found["added"], found["wrong"]) == ("done", 2, 1, 1)
    assert Item.objects.count() == 1
    assert "Mails of autumn" in read()


def test_it_says_what_could_not_be_read() -> None:
    source = SourceFactory.create(sheet=True)
    with pytest.raises(CommandError, match="1 of 1 could not be read") as failed:
        read(str(source.pk))
    assert failed.value.returncode == 1
    assert Source.objects.get().stopped_at is not None


def test_it_knows_no_other_source() -> None:
    with pytest.raises(CommandError) as failed:
        read("12345")
    assert failed.value.returncode == 2
