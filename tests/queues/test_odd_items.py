"""Items that are unusual: very long, in a lost hour, with a formula's error, or given by two people at once."""

import csv
import io
import threading
from datetime import UTC, datetime
from typing import Any

import pytest
from django.core.files.base import ContentFile
from django.db import connection

from accounts.models import User
from queues.actions import Took, put
from queues.entries import read_time
from queues.imports import stages
from queues.imports.rows import RowReader
from queues.models import Item, QueueImport
from tests.factories import AccountFactory, QueueFactory
from tests.queues.test_actions import entry

FAMILY = "\N{MAN}\N{ZERO WIDTH JOINER}\N{WOMAN}"  # one sign of three characters
COLUMNS: list[dict[str, Any]] = [
    {"title": "ID", "means": "own_id", "variable": ""},
    {"title": "To", "means": "address", "variable": ""},
    {"title": "Text", "means": "text", "variable": ""},
    {"title": "Notes", "means": "", "variable": ""},
]


@pytest.mark.django_db
@pytest.mark.usefixtures("redis")
def test_texts_of_65536_characters_with_emoji_are_kept_as_they_are(owner: User) -> None:
    queue = QueueFactory.create(
        owner=owner, by_email=True, accounts=[AccountFactory.create(owner=owner, by_email=True)]
    )
    long = (FAMILY * 22_000)[:65_536]
    given = entry(1, address="anna@example.com", text=long, subject=long)
    more = entry(2, address="ben@example.com", text=long + "!")
    taken, refused = put(queue, [given, more], source="file", by=None)
    assert (taken.took, refused.took) == (Took.ADDED, Took.REFUSED)
    content = Item.objects.get().content
    assert content.parts is not None
    assert (content.subject, content.parts[0]["text"]) == (long, long)
    assert put(queue, [given], source="file", by=None)[0].took == Took.UNCHANGED


@pytest.mark.parametrize(
    ("written", "moment"),
    [
        (
            "2027-03-28 02:30",
            datetime(2027, 3, 28, 1, 30, tzinfo=UTC),
        ),  # there is no such time: it is 3:30 then
        ("2027-10-31 02:30", datetime(2027, 10, 31, 0, 30, tzinfo=UTC)),  # there are two: the first
        ("2027-03-28 02:30+01:00", datetime(2027, 3, 28, 1, 30, tzinfo=UTC)),
    ],
)
def test_times_in_the_hour_of_a_clock_change_are_read(written: str, moment: datetime) -> None:
    found = read_time(written, "Europe/Berlin")
    assert found is not None
    assert found.astimezone(UTC) == moment


@pytest.mark.parametrize("shown", ["#REF!", "#N/A", "#DIV/0!", "#NAME?"])
def test_a_row_with_a_formulas_error_is_refused_and_the_next_one_taken(shown: str) -> None:
    reader = RowReader(columns=COLUMNS, zone="UTC")
    wrong = reader.read(2, ["1", "anna@example.com", shown, ""])
    right = reader.read(3, ["2", "ben@example.com", "Dear Ben", shown])
    assert wrong is not None
    assert right is not None
    assert wrong.problem == f"“Text” shows the error {shown}. Correct its formula."
    assert right.problem == ""


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("redis")
def test_two_people_who_import_the_same_file_at_once_make_nothing_twice(owner: User, mate: User) -> None:
    queue, rows = QueueFactory.create(owner=owner), io.StringIO()
    csv.writer(rows).writerows([("phone", "text"), *((f"+60127000{n:03}", f"Text {n}") for n in range(60))])
    jobs = [
        stages.upload(queue, ContentFile(rows.getvalue().encode()), filename="items.csv", by=by)
        for by in (owner, mate)
    ]
    QueueImport.objects.update(status=QueueImport.Status.SAVING)
    ready = threading.Barrier(2)

    def save(job: QueueImport) -> None:
        ready.wait()
        stages.work(job.pk)
        connection.close()

    threads = [threading.Thread(target=save, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    counts = [QueueImport.objects.get(pk=job.pk).counts for job in jobs]
    assert Item.objects.count() == 60
    assert sum(each["added"] for each in counts) == 60
    assert sum(each["unchanged"] for each in counts) == 60
