"""The page of the audit log: who sees what, filters, names and the file."""

import csv
import io

import pytest
from django.test import Client

from accounts.models import User
from accounts.recipients.change import change
from audit import retention
from audit.models import Entry
from tests.factories import EntryFactory, RecipientFactory

pytestmark = pytest.mark.django_db


def names(client: Client, **filters: str) -> list[str]:
    page = client.get("/audit/", filters)
    assert page.status_code == 200
    return [entry.thing_name for entry in page.context["page"].rows]


def test_an_owner_sees_what_concerns_their_things_and_staff_see_all(
    owner: User, mate: User, stranger: User, staff: User, client: Client
) -> None:
    EntryFactory.create(owner=owner, thing_name="mine")
    EntryFactory.create(owner=None, actor=staff, thing_name="the installation")
    seen = {owner: ["mine"], mate: [], stranger: [], staff: ["the installation", "mine"]}
    for person, expected in seen.items():
        client.force_login(person)
        people = {str(each) for each in (owner, mate, stranger, staff)}  # they logged in
        assert [name for name in names(client) if name not in people] == expected
    client.logout()
    assert client.get("/audit/").status_code == 302


def test_filters_find_who_what_thing_door_and_day(owner: User, client: Client) -> None:
    client.force_login(owner)
    EntryFactory.create(owner=owner, thing_id=12, thing_name="twelve")
    EntryFactory.create(
        owner=owner, actor_name="anna", action="account.limits", thing_type="account", thing_name="a"
    )
    EntryFactory.create(owner=owner, door="key", action="run.cancel", thing_name="by a key")
    assert names(client, who="anna") == ["a"]
    assert names(client, what="account") == ["a"]
    assert names(client, what="run.cancel") == names(client, door="key") == ["by a key"]
    assert names(client, thing="run 12") == ["twelve"]
    assert names(client, until="2020-01-01") == []
    assert len(names(client, since="2020-01-01", until="9999-12-31")) == 4
    assert "kind of thing" in client.get("/audit/", {"thing": "12?"}).content.decode()


@pytest.mark.parametrize(
    "query", ["what=x", "door=x", "since=x", "after=99999999999999999999", "thing=run+" + "9" * 18]
)
def test_a_strange_filter_shows_the_page(query: str, owner: User, client: Client) -> None:
    client.force_login(owner)
    assert client.get(f"/audit/?{query}").status_code == 200


def test_a_recipient_is_named_as_now_and_by_its_number_once_erased(owner: User, client: Client) -> None:
    client.force_login(owner)
    recipient = RecipientFactory.create(owner=owner, name="Anna")
    change(recipient, name="Anna Berg", by=owner)
    page = client.get("/audit/", {"thing": "recipient"}).content.decode()
    assert "Anna Berg" in page
    assert "Anna →" in page
    number = recipient.pk
    retention.forget_recipient(number)
    recipient.delete()
    page = client.get("/audit/", {"thing": "recipient"}).content.decode()
    assert "Anna" not in page
    assert f"recipient {number}" in page


def test_the_file_holds_what_the_filters_find_and_its_download_is_recorded(
    owner: User, client: Client
) -> None:
    client.force_login(owner)
    EntryFactory.create(owner=owner, thing_name="=cmd()")
    EntryFactory.create(owner=owner, action="run.cancel")
    answer = client.get("/audit/audit.csv", {"what": "run.pause"})
    text = b"".join(answer.streaming_content).decode("utf-8-sig")  # type: ignore[attr-defined]
    found = list(csv.DictReader(io.StringIO(text)))
    assert [(line["what"], line["name"]) for line in found] == [("paused a run", "'=cmd()")]
    assert Entry.objects.filter(action="export.made", owner=owner).exists()
