"""The life of an import: nothing is saved before it is confirmed, and then all of it or nothing."""

import datetime as dt
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.core.files.base import ContentFile
from django.db import DatabaseError, connection, transaction
from django_celery_beat.models import PeriodicTask
from pytest_django import DjangoCaptureOnCommitCallbacks, Settings
from redis import Redis

from accounts.imports import progress, save, stages
from accounts.imports.sheets import SheetError
from accounts.models import Import, Recipient, Tag, User
from accounts.roles import visible
from config.celery import app
from tests.accounts.imports.test_sheets import workbook
from tests.factories import AccountFactory, RecipientFactory, TagFactory

pytestmark = pytest.mark.django_db

FILE = "Phone,Name,Tags,City\n+60123456789,Ann,Choir,Ipoh\n012,Ben,,\n+60 12-345 6789,Ann again,,\n+60123456780,Cy,,\n"


def upload(owner: User, content: bytes | str = FILE, filename: str = "people.csv") -> Import:
    data = content.encode() if isinstance(content, str) else content
    return stages.upload(owner, ContentFile(data), filename=filename, by=owner)


def checked(owner: User, content: bytes | str = FILE, **choices: object) -> Import:
    job = upload(owner, content)
    for name, value in choices.items():
        setattr(job, name, value)
    job.save()
    stages.start_check(job)
    return job


def test_an_upload_guesses_and_saves_nobody(owner: User) -> None:
    job = upload(owner)
    assert (job.status, job.channel, job.header) == ("draft", "whatsapp", True)
    assert [column["means"] for column in job.columns] == ["address", "name", "tags", "variable"]
    assert stages.sample_of(job, by=owner)[1] == ["+60123456789", "Ann", "Choir", "Ipoh"]
    assert not Recipient.objects.exists()


def test_a_person_has_one_file_read_at_a_time_and_another_person_another(owner: User, stranger: User) -> None:
    assert stages.readings().take(owner.pk) is None
    try:
        with pytest.raises(SheetError, match="Other files are being read"):
            upload(owner)
        assert not Import.objects.exists()
        assert upload(stranger).status == "draft"
    finally:
        stages.readings().give_back(owner.pk)
    assert upload(owner).status == "draft"


def test_rows_that_are_empty_without_end_are_not_read_to_the_last(
    owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stages, "LONGEST_SAMPLE", 0.0)
    with pytest.raises(SheetError, match="Delete the empty rows"):
        upload(owner, ",\n" * 10_000 + FILE)


def test_empty_rows_above_the_table_and_in_it_are_left_out(owner: User) -> None:
    job = checked(owner, "\n,\nPhone,Name\n\n+60123456789,Ann\n , \n+60123456780,Ben\n")
    assert [column["title"] for column in job.columns] == ["Phone", "Name"]
    assert list(job.rows.values_list("number", "name")) == [(5, "Ann"), (7, "Ben")]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (workbook(), "first sheet is empty"),
        (("a," * 201 + "\n").encode(), "more than 200 columns"),
    ],
)
def test_what_has_no_rows_or_far_too_many_columns_is_refused_at_once(
    owner: User, content: bytes, why: str
) -> None:
    with pytest.raises(SheetError, match=why):
        upload(owner, content)
    assert not Import.objects.exists()


def test_two_columns_with_one_title_are_two_variables_until_somebody_says_otherwise(owner: User) -> None:
    job = checked(owner, "Phone,City,City\n+60123456789,Ipoh,KL\n")
    stages.confirm(job)
    assert Recipient.objects.get().fields == {"city": "Ipoh", "city_2": "KL"}


@pytest.mark.parametrize(
    ("number", "address"),
    [
        (60123456789.0, "+60123456789"),
        ("60123456789.0", "+60123456789"),
        ("'+60123456789", "+60123456789"),
        (dt.datetime.fromisoformat("2026-11-20"), None),
        ("6.01E+10", None),
        ("=A1", None),
        (True, None),
        (None, None),
    ],
)
def test_numbers_of_a_workbook_are_read_or_refused_and_never_changed(
    owner: User, number: object, address: str | None
) -> None:
    job = checked(owner, workbook(["Phone", "Name"], [60123456780, "Ben"], [number, "Ann"]))
    row = job.rows.get(name="Ann")
    assert (row.address, bool(row.problem)) == (address or "", address is None)


def test_a_file_that_is_no_table_leaves_nothing_behind(owner: User) -> None:
    with pytest.raises(SheetError):
        upload(owner, b"\xd0\xcf\x11\xe0")
    assert not Import.objects.exists()


def test_a_check_counts_what_is_new_known_doubled_and_wrong_and_saves_nobody(owner: User) -> None:
    RecipientFactory.create(owner=owner, address="+60123456780")
    RecipientFactory.create(address="+60123456789")  # of somebody else
    job = checked(owner)
    assert job.status == "checked"
    assert job.counts == {"rows": 4, "bad": 1, "twins": 1, "known": 1, "new": 1}
    rows = list(job.rows.values_list("number", "twin", "known", "problem"))
    assert [(number, twin, known, bool(problem)) for number, twin, known, problem in rows] == [
        (2, None, False, False),
        (3, None, False, True),
        (4, 2, False, False),
        (5, None, True, False),
    ]
    assert not visible(Recipient.objects.filter(name="Ann"), owner).exists()


def test_a_confirmed_import_adds_updates_and_tags(owner: User) -> None:
    known = RecipientFactory.create(owner=owner, address="+60123456780", name="Old", fields={"city": "KL"})
    job = checked(owner, tags=["2026"])
    stages.confirm(job)
    assert job.status == "done"
    assert job.counts | {"added": 1, "updated": 1, "left": 0} == job.counts
    ann = Recipient.objects.get(owner=owner, address="+60123456789")
    assert (ann.name, ann.kind, ann.fields) == ("Ann", "person", {"city": "Ipoh"})
    assert {tag.name for tag in ann.tags.all()} == {"Choir", "2026"}
    known.refresh_from_db()
    assert (known.name, known.fields) == ("Cy", {"city": "KL"})
    assert [tag.name for tag in known.tags.all()] == ["2026"]
    assert list(job.rows.values_list("outcome", flat=True)) == ["added", "", "", "updated"]


def test_those_who_exist_can_be_left_as_they_are(owner: User) -> None:
    known = RecipientFactory.create(owner=owner, address="+60123456780", name="Old")
    job = checked(owner, on_existing="skip", tags=["2026"])
    stages.confirm(job)
    known.refresh_from_db()
    assert known.name == "Old"
    assert not known.tags.exists()
    assert list(job.rows.values_list("outcome", flat=True)) == ["added", "", "", "left"]


def test_what_the_file_leaves_empty_stays_and_an_import_opts_nobody_in(owner: User) -> None:
    known = RecipientFactory.create(
        owner=owner, address="+60123456789", name="Ann", opted_out=True, archived=True, fields={"a": "1"}
    )
    stages.confirm(checked(owner, "Phone,Name,b\n+60123456789,,2\n"))
    known.refresh_from_db()
    assert (known.name, known.fields, known.archived_at) == ("Ann", {"a": "1", "b": "2"}, None)
    assert known.opted_out_at is not None


def test_tags_that_exist_are_used_and_of_this_owner_alone(owner: User) -> None:
    mine, others = TagFactory.create(owner=owner, name="Choir"), TagFactory.create(name="Choir")
    stages.confirm(checked(owner))
    assert [tag.pk for tag in Tag.objects.filter(owner=owner)] == [mine.pk]
    assert mine.recipients.count() == 1
    assert others.recipients.count() == 0


def test_an_account_can_be_named_that_reaches_them(owner: User) -> None:
    account = AccountFactory.create(owner=owner)
    stages.confirm(checked(owner, account=account))
    assert set(Recipient.objects.values_list("account", flat=True)) == {account.pk}


def test_nothing_is_saved_when_anything_fails(owner: User, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = "".join(f"+6012{number:07},Somebody\n" for number in range(30))
    job = checked(owner, "Phone,Name\n" + lines)
    monkeypatch.setattr(save, "CHUNK", 10)
    with connection.cursor() as cursor:
        # The last chunk meets a recipient that the database refuses.
        cursor.execute("UPDATE accounts_importrow SET address = 'no number' WHERE number = 31")
    with pytest.raises(DatabaseError):
        stages.confirm(job)
    job.refresh_from_db()
    assert job.status == "failed"
    assert "nothing was saved" in job.problem
    assert not Recipient.objects.exists()


def test_confirming_twice_saves_once(owner: User) -> None:
    job = checked(owner)
    again = Import.objects.get(pk=job.pk)
    stages.confirm(job)
    with pytest.raises(stages.WrongStageError, match="has changed meanwhile"):
        stages.confirm(again)
    stages.confirm(job)
    assert Recipient.objects.count() == 2


def test_work_that_comes_late_or_twice_finds_nothing_to_do(owner: User) -> None:
    job = checked(owner)
    stages.confirm(job)
    before = list(Recipient.objects.values())
    stages.work(job.pk)
    stages.work(job.pk + 1)
    assert list(Recipient.objects.values()) == before


def test_a_file_without_a_good_row_cannot_be_confirmed(owner: User) -> None:
    job = checked(owner, "Phone\nnobody\n")
    with pytest.raises(stages.WrongStageError, match="No row"):
        stages.confirm(job)


def test_a_file_of_titles_alone_is_refused_and_the_columns_can_be_chosen_again(owner: User) -> None:
    job = checked(owner, "Phone,Name\n")
    assert job.status == "failed"
    assert "only its titles" in job.problem
    stages.reconsider(job)
    assert (job.status, job.problem) == ("draft", "")


def test_too_many_rows_are_refused(owner: User, settings: Settings) -> None:
    settings.IMPORT_MAX_ROWS = 3
    job = checked(owner)
    assert job.status == "failed"
    assert "more than 3 rows" in job.problem


def test_a_workbook_goes_the_same_way(owner: User) -> None:
    job = checked(owner, workbook(["Phone", "Name"], [60123456789, "Ann"], ["nobody", "Ben"]))
    stages.confirm(job)
    assert Recipient.objects.get().address == "+60123456789"


def test_the_file_is_deleted_once_it_is_saved_or_discarded(
    owner: User, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    job = checked(owner)
    storage, name = job.file.storage, str(job.file.name)
    assert storage.exists(name)
    with django_capture_on_commit_callbacks(execute=True):
        stages.confirm(job)
    assert not storage.exists(name)
    other = upload(owner)
    name = str(other.file.name)
    stages.discard(other)
    assert not storage.exists(name)
    assert list(Import.objects.all()) == [job]


class TestByAWorker:
    """A large file is left to a worker, which says how far it is."""

    @pytest.fixture(autouse=True)
    def large(self, monkeypatch: pytest.MonkeyPatch, redis: Redis) -> None:
        monkeypatch.setattr(stages, "AT_ONCE", 0)

    @pytest.mark.django_db(transaction=True)
    def test_a_large_file_waits_for_a_worker(self, owner: User, redis: Redis) -> None:
        job = checked(owner)
        assert job.status == "checking"
        assert redis.llen(f"paceline:queue:{app.conf.task_default_queue}") == 1
        stages.work(job.pk)
        job.refresh_from_db()
        assert job.status == "checked"

    @pytest.mark.django_db(transaction=True)
    def test_what_nobody_works_on_goes_on_by_itself(self, owner: User, redis: Redis) -> None:
        job = checked(owner)
        redis.flushdb()  # the message to the worker is lost, or the worker that had it died
        assert (stages.stalled(job), stages.rescue()) == (False, [])
        Import.objects.update(started_at="2020-01-01T00:00Z")
        job.refresh_from_db()
        assert (stages.stalled(job), stages.rescue()) == (True, [job.pk])
        assert redis.llen(f"paceline:queue:{app.conf.task_default_queue}") == 1
        stages.work(job.pk)
        assert stages.rescue() == []

    @pytest.mark.django_db(transaction=True)
    def test_what_a_worker_is_at_is_left_to_it(self, owner: User) -> None:
        job = checked(owner)
        Import.objects.update(started_at="2020-01-01T00:00Z")
        progress.Reporter(job.pk).tell(rows=1, share=0.1)
        with transaction.atomic():
            Import.objects.select_for_update().get(pk=job.pk)
            with ThreadPoolExecutor(1) as another:
                assert another.submit(_closing, stages.rescue).result() == []
                another.submit(_closing, stages.work, job.pk).result()
        job.refresh_from_db()
        assert job.status == "checking"
        assert progress.progress_of(job.pk) is not None

    @pytest.mark.django_db(transaction=True)
    def test_what_is_worked_on_is_not_discarded(self, owner: User) -> None:
        job = checked(owner)
        Import.objects.update(started_at="2020-01-01T00:00Z")
        job.refresh_from_db()
        progress.Reporter(job.pk).tell(rows=1, share=0.1)
        assert not stages.stalled(job)
        with pytest.raises(stages.WrongStageError, match="is in progress"):
            stages.discard(job)


def test_beat_looks_after_imports() -> None:
    job = PeriodicTask.objects.get(task="accounts.rescue_imports")
    assert job.interval is not None
    assert (job.interval.every, job.enabled) == (stages.RESCUED_EVERY, True)


def _closing(work: Callable[..., object], *arguments: object) -> object:
    try:
        return work(*arguments)
    finally:
        connection.close()


def test_progress_is_told_and_forgotten(redis: Redis) -> None:
    progress.Reporter(7).tell(rows=500, share=0.254)
    told = progress.progress_of(7)
    assert told is not None
    assert (told.rows, told.percent) == (500, 25)
    progress.forget(7)
    assert progress.progress_of(7) is None
