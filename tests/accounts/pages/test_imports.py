"""The pages of an import, from the file to the report."""

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse
from pytest_django import Settings
from redis import Redis

from accounts.imports import progress, stages
from accounts.models import Import, Recipient, User
from tests.accounts.imports.test_stages import FILE, checked, upload
from tests.factories import AccountFactory, RecipientFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def as_owner(client: Client, owner: User) -> Client:
    client.force_login(owner)
    return client


def url(name: str, *args: object) -> str:
    return reverse(f"recipients:{name}", args=args)


def columns(**changes: object) -> dict[str, object]:
    """Return the form that the page of columns sends when nothing is corrected."""
    return {
        "channel": "whatsapp",
        "region": "",
        "header": "on",
        "on_existing": "update",
        "account": "",
        "tag_names": "",
        "means_0": "address",
        "means_1": "name",
        "means_2": "tags",
        "means_3": "variable",
        "variable_3": "city",
    } | changes


def test_a_file_goes_all_the_way(as_owner: Client, owner: User) -> None:
    RecipientFactory.create(owner=owner, address="+60123456780")
    answer = as_owner.post(url("import"), {"file": SimpleUploadedFile("people.csv", FILE.encode())})
    job = Import.objects.get()
    assert answer["Location"] == url("import_columns", job.pk)
    assert "Ipoh" in as_owner.get(url("import_columns", job.pk)).content.decode()
    answer = as_owner.post(url("import_columns", job.pk), columns(tag_names="2026"))
    assert answer["Location"] == url("import_job", job.pk)
    text = as_owner.get(url("import_job", job.pk)).content.decode()
    assert "Import 2 recipients, leave out 2" in text
    assert "The same address as in row 2." in text
    assert "no country is set" in text
    assert Recipient.objects.count() == 1
    as_owner.post(url("import_confirm", job.pk))
    text = as_owner.get(url("import_job", job.pk)).content.decode()
    assert "Show recipients" in text
    assert Recipient.objects.filter(tags__name="2026").count() == 2


def test_the_report_names_every_row(as_owner: Client, owner: User) -> None:
    job = checked(owner)
    stages.confirm(job)
    answer = as_owner.get(url("import_report", job.pk))
    lines = answer.getvalue().decode("utf-8-sig").splitlines()
    assert lines[0] == "row,as written,address,name,result,reason"
    assert lines[1] == "2,+60123456789,+60123456789,Ann,added,"
    assert lines[2].startswith("3,012,,Ben,left out,")
    assert lines[3].endswith("left out,The same address as in row 2.")


def test_the_first_page_asks_for_a_file_and_complains_of_nothing(as_owner: Client) -> None:
    assert 'class="error"' not in as_owner.get(url("import")).content.decode()


def test_a_file_that_is_no_table_or_too_large_is_refused(as_owner: Client, settings: Settings) -> None:
    broken = SimpleUploadedFile("old.xls", b"\xd0\xcf\x11\xe0")
    assert "old Excel" in as_owner.post(url("import"), {"file": broken}).content.decode()
    settings.IMPORT_MAX_MB = 0
    large = SimpleUploadedFile("people.csv", FILE.encode())
    assert "limit: 0 MB" in as_owner.post(url("import"), {"file": large}).content.decode()
    assert "Choose a file." in as_owner.post(url("import")).content.decode()
    assert not Import.objects.exists()


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"means_0": ""}, "exactly one column for the address"),
        ({"means_1": "address"}, "exactly one column for the address"),
        ({"means_2": "name"}, "Choose only one column for the name"),
        ({"variable_3": "!"}, "Enter a name for the variable"),
        ({"variable_3": "Name"}, "is already used"),
        ({"means_2": "variable", "variable_2": "City"}, "“city” is already used"),
        ({"region": "XX"}, "is not a country"),
    ],
)
def test_columns_that_cannot_be_are_told(
    as_owner: Client, owner: User, changes: dict[str, object], why: str
) -> None:
    job = upload(owner)
    answer = as_owner.post(url("import_columns", job.pk), columns(**changes))
    assert answer.status_code == 200
    assert why in answer.content.decode()
    job.refresh_from_db()
    assert job.status == "draft"


def test_an_account_of_another_channel_is_refused(as_owner: Client, owner: User) -> None:
    job, account = upload(owner), AccountFactory.create(owner=owner, by_email=True)
    answer = as_owner.post(url("import_columns", job.pk), columns(account=account.pk))
    assert "belongs to another channel" in answer.content.decode()


def test_columns_can_be_corrected_after_the_check(as_owner: Client, owner: User) -> None:
    job = checked(owner)
    as_owner.post(
        url("import_columns", job.pk), columns(region="MY", means_2="", means_1="variable", variable_1="who")
    )
    job.refresh_from_db()
    assert (job.status, job.region) == ("checked", "MY")
    assert job.rows.get(number=2).fields == {"city": "Ipoh", "who": "Ann"}


def test_a_file_of_titles_alone_leads_back_to_the_columns(as_owner: Client, owner: User) -> None:
    job = upload(owner, "Phone,Name\n")
    answer = as_owner.post(url("import_columns", job.pk), columns(means_2="", means_3=""), follow=True)
    assert "only its titles" in answer.content.decode()


def test_a_large_file_shows_its_progress_until_it_is_done(
    as_owner: Client, owner: User, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = upload(owner)
    monkeypatch.setattr(stages, "AT_ONCE", 0)
    stages.start_check(job)
    assert "waiting for a worker" in as_owner.get(url("import_job", job.pk)).content.decode()
    progress.Reporter(job.pk).tell(rows=1500, share=0.5)
    polled = as_owner.get(url("import_job", job.pk), headers={"HX-Request": "true"})
    assert "1,500 rows, 50%" in polled.content.decode()
    assert "HX-Refresh" not in polled
    stages.work(job.pk)
    polled = as_owner.get(url("import_job", job.pk), headers={"HX-Request": "true"})
    assert polled["HX-Refresh"] == "true"


def test_what_nobody_begins_says_that_it_goes_on_by_itself(
    as_owner: Client, owner: User, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = upload(owner)
    monkeypatch.setattr(stages, "AT_ONCE", 0)
    stages.start_check(job)
    Import.objects.update(started_at="2020-01-01T00:00Z")
    assert (
        "It continues automatically within a minute"
        in as_owner.get(url("import_job", job.pk)).content.decode()
    )


def test_an_import_is_discarded(as_owner: Client, owner: User) -> None:
    job = checked(owner)
    assert as_owner.post(url("import_discard", job.pk)).status_code == 302
    assert not Import.objects.exists()


@pytest.mark.parametrize("name", ["import_job", "import_columns", "import_report"])
def test_the_team_sees_an_import_and_a_stranger_does_not(
    client: Client, owner: User, mate: User, stranger: User, name: str
) -> None:
    job = checked(owner)
    for person, status in ((owner, 200), (mate, 200), (stranger, 404)):
        client.force_login(person)
        assert client.get(url(name, job.pk)).status_code == status


@pytest.mark.parametrize("name", ["import_confirm", "import_discard", "import_columns"])
def test_a_reader_changes_nothing_and_a_stranger_finds_nothing(
    client: Client, owner: User, reader: User, stranger: User, name: str
) -> None:
    job = checked(owner)
    for person, status in ((reader, 403), (stranger, 404)):
        client.force_login(person)
        assert client.post(url(name, job.pk)).status_code == status
    assert not Recipient.objects.exists()


def test_a_mate_imports_for_the_owner(client: Client, owner: User, mate: User) -> None:
    client.force_login(mate)
    client.post(url("import"), {"file": SimpleUploadedFile("a.csv", FILE.encode()), "owner": owner.pk})
    job = Import.objects.get()
    assert (job.owner, job.made_by) == (owner, mate)


def test_a_file_that_cannot_be_read_any_more_is_said_in_a_sentence(as_owner: Client, owner: User) -> None:
    job = upload(owner)
    assert stages.readings().take(owner.pk) is None
    try:
        answer = as_owner.get(url("import_columns", job.pk), follow=True)
    finally:
        stages.readings().give_back(owner.pk)
    assert answer.redirect_chain == [(url("import"), 302)]
    assert "Other files are being read right now" in answer.content.decode()
