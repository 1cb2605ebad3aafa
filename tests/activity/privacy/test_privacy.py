"""Everything about one person can be had as a file and erased, and an erased address stays out by every door."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.core.files.base import ContentFile
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.models import ForeignKey
from django.test import Client

from accounts.imports import save, stages
from accounts.models import (
    AddressAlias,
    ConsentChange,
    Delivery,
    Import,
    ImportRow,
    Recipient,
    TeamMate,
    User,
)
from accounts.models.account import Channel
from accounts.recipients import bulk
from accounts.recipients.add import recipient_for
from accounts.recipients.bulk import Given
from accounts.recipients.change import change
from accounts.recipients.consent import opt_in
from accounts.recipients.erased import HOW
from activity.models import Inbound, Notification
from activity.privacy import erase as erasing
from activity.privacy.erase import NAME, NotErasableError, erase
from activity.privacy.export import export
from audit.models import Entry, PersonalValues
from delivery.models import RunTarget
from delivery.states import TargetStatus
from notices.models import Notice
from queues.models import QueueImport
from tests.api.program import Program
from tests.factories import (
    AccountFactory,
    AddressAliasFactory,
    DeliveryFactory,
    FollowUpFactory,
    ImportFactory,
    ImportRowFactory,
    InboundFactory,
    NoticeFactory,
    NotificationFactory,
    QueueImportFactory,
    RecipientFactory,
    RunTargetFactory,
    TagFactory,
    TeamMateFactory,
    WebhookFactory,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis")]

NAMED = "Annabel Lee"
ADDRESS = "+60123456789"


@pytest.fixture
def anna(owner: User) -> Recipient:
    """A person of whom there is something in every corner."""
    account = AccountFactory.create(owner=owner)
    recipient = RecipientFactory.create(
        owner=owner,
        kind="person",
        address=ADDRESS,
        name=NAMED,
        fields={"city": "Ipoh of Annabel"},
        tags=[TagFactory.create(owner=owner)],
    )
    target = RunTargetFactory.create(
        recipient=recipient,
        account=account,
        run__reminder__owner=owner,
        sent=True,
        provider_id=f"true_{ADDRESS}",
    )
    InboundFactory.create(account=account, recipient=recipient, sender=ADDRESS, text="I am Annabel Lee")
    AddressAliasFactory.create(account=account, alias="1234@lid", address=ADDRESS)
    FollowUpFactory.create(recipient=recipient, target=target)
    NotificationFactory.create(owner=owner, body=f"{NAMED} replied")
    DeliveryFactory.create(webhook=WebhookFactory.create(owner=owner), payload={"data": {"address": ADDRESS}})
    ImportRowFactory.create(
        job=ImportFactory.create(owner=owner, channel="whatsapp"),
        address=ADDRESS,
        written=ADDRESS,
        name=NAMED,
    )
    QueueImportFactory.create(
        queue__owner=owner,
        first=[[2, ADDRESS, "Dear Annabel", "", ""]],
        problems=[{"row": 3, "own_id": ADDRESS, "why": "Annabel"}],
    )
    mate = TeamMateFactory.create(owner=owner).mate
    NotificationFactory.create(owner=mate, key=f"team:{owner.pk}:run:1", body=f"{NAMED} replied")
    for person in (owner, mate):
        NoticeFactory.create(address__person=person, title=f"Message to {NAMED} waits for you")
    change(recipient, fields={"city": "Ipoh of Annabel", "street": "Annabel"}, by=owner)
    return recipient


def everywhere() -> list[str]:
    """Return the tables in which the person can still be found."""
    found = []
    with connection.cursor() as cursor:
        for model in apps.get_models():
            table = model._meta.db_table
            cursor.execute(
                f'SELECT EXISTS (SELECT 1 FROM "{table}" t WHERE t::text ILIKE %s OR t::text LIKE %s)',
                ["%annabel%", f"%{ADDRESS.removeprefix('+')}%"],
            )
            if cursor.fetchone()[0]:
                found.append(table)
    return found


def test_nothing_of_an_erased_person_is_left_in_any_table(anna: Recipient, owner: User) -> None:
    assert len(everywhere()) > 5
    erase(anna, by=owner)
    assert everywhere() == []


def test_files_of_queues_are_deleted_and_what_is_not_saved_is_uploaded_again(
    anna: Recipient, owner: User, django_capture_on_commit_callbacks: Any
) -> None:
    job = QueueImport.objects.get()
    job.file.save("items.csv", ContentFile(f"{ADDRESS};Dear Annabel".encode()))
    path = Path(job.file.path)
    with django_capture_on_commit_callbacks(execute=True):
        assert erase(anna, by=owner)["files of queues"] == 1
    assert not QueueImport.objects.exists()
    assert not path.exists()


def test_it_waits_for_a_file_of_items_that_is_being_saved(anna: Recipient, owner: User) -> None:
    QueueImport.objects.update(status="saving")
    with pytest.raises(NotErasableError, match="being checked or saved"):
        erase(anna, by=owner)


def test_notices_of_strangers_stay(anna: Recipient, owner: User, stranger: User) -> None:
    kept = NoticeFactory.create(address__person=stranger, body=f"{NAMED} replied")
    assert erase(anna, by=owner)["notices"] == 2
    assert list(Notice.objects.all()) == [kept]


def test_counts_stay_and_the_opt_out_and_the_entry_of_the_audit_log(anna: Recipient, owner: User) -> None:
    erase(anna, by=owner)
    anna.refresh_from_db()
    assert (anna.name, anna.fields, list(anna.tags.all())) == (NAME, {}, [])
    assert anna.opted_out_at
    assert anna.erased_at
    assert anna.address.startswith("erased:")
    assert RunTarget.objects.get().status == TargetStatus.SENT
    assert Entry.objects.filter(action="recipient.erased", thing_id=anna.pk, actor=owner).exists()
    assert PersonalValues.objects.get().entry.action == "recipient.erased"
    assert not Inbound.objects.exists()
    assert not Notification.objects.exists()
    assert not Delivery.objects.exists()
    assert not AddressAlias.objects.exists()
    assert not ImportRow.objects.exists()
    assert set(ConsentChange.objects.values_list("how", flat=True)) == {"erased on request"}


def test_every_table_that_names_recipients_is_thought_of() -> None:
    source = Path(erasing.__file__).read_text()
    named = {
        model.__name__
        for model in apps.get_models()
        for field in model._meta.get_fields()
        if isinstance(field, ForeignKey) and field.related_model is Recipient and not model._meta.auto_created
    }
    assert {name for name in named if name not in source} == set()


def added(owner: User, door: str) -> Recipient:
    match door:
        case "a program":
            bulk.put(owner, [Given(channel="whatsapp", address=ADDRESS, name="Again")])
        case "one by one":
            recipient_for(owner, Channel.WHATSAPP, ADDRESS)
        case "the page":
            page = Client()
            page.force_login(owner)
            page.post(
                "/recipients/add/", {"channel": "whatsapp", "address": "+60 12 345 6789", "name": "Again"}
            )
        case "an import":
            job = ImportFactory.create(owner=owner, channel="whatsapp")
            ImportRowFactory.create(job=job, number=1, address=ADDRESS, kind="person")
            save.save(job)
    return Recipient.objects.get(owner=owner, address=ADDRESS)


@pytest.mark.parametrize("door", ["a program", "one by one", "the page", "an import"])
def test_whoever_adds_the_address_again_finds_it_opted_out(door: str, anna: Recipient, owner: User) -> None:
    erase(anna, by=owner)
    again = added(owner, door)
    assert again.opted_out_at
    assert again.consent_changes.get().how == HOW


def test_only_the_owner_and_the_channel_of_the_erasure_are_meant(
    anna: Recipient, owner: User, stranger: User, settings: Any
) -> None:
    erase(anna, by=owner)
    assert recipient_for(stranger, Channel.WHATSAPP, ADDRESS).opted_out_at is None
    settings.SECRET_KEY_FALLBACKS, settings.SECRET_KEY = (
        [settings.SECRET_KEY],
        "another key of the installation",
    )
    settings.UNSUBSCRIBE_KEYS = []
    assert recipient_for(owner, Channel.WHATSAPP, ADDRESS).opted_out_at


def test_they_can_come_back_when_they_ask_for_it_and_be_erased_again(anna: Recipient, owner: User) -> None:
    erase(anna, by=owner)
    again = recipient_for(owner, Channel.WHATSAPP, ADDRESS)
    opt_in(again, how="They wrote a letter", by=owner)
    assert Recipient.objects.get(pk=again.pk).opted_out_at is None
    assert recipient_for(owner, Channel.WHATSAPP, ADDRESS) == again
    erase(again, by=owner)
    assert Recipient.objects.filter(erased_at__isnull=False).count() == 2
    assert everywhere() == []


def test_it_waits_for_a_message_on_its_way_and_for_an_import_at_work(anna: Recipient, owner: User) -> None:
    Import.objects.update(status=stages.WORKING[0])
    with pytest.raises(NotErasableError, match="import"):
        erase(anna, by=owner)
    Import.objects.update(status="done")
    erase(anna, by=owner)
    with pytest.raises(NotErasableError, match="already"):
        erase(anna, by=owner)


def test_the_export_has_every_section_and_is_recorded(anna: Recipient, owner: User) -> None:
    found = export(anna, by=owner)
    assert found["recipient"]["address"] == ADDRESS
    assert [reply["text"] for reply in found["what_they_sent"]] == ["I am Annabel Lee"]
    assert found["other_addresses"] == ["1234@lid"]
    assert {len(found[name]) for name in ("messages", "follow_ups", "tags")} == {1}
    assert "changed a recipient" in {entry["what"] for entry in found["audit_log"]}
    assert Entry.objects.filter(action="recipient.exported", actor=owner).exists()


def test_the_page_asks_for_the_name_and_needs_the_role_manage(
    anna: Recipient, owner: User, mate: User, reader: User, stranger: User, client: Client
) -> None:
    TeamMate.objects.filter(mate=mate).update(role="send")
    for person, status in ((stranger, 404), (reader, 403), (mate, 403), (owner, 200)):
        client.force_login(person)
        assert client.get(f"/recipients/{anna.pk}/erase").status_code == status
    assert b"does not match" in client.post(f"/recipients/{anna.pk}/erase", {"typed": "Bob"}).content
    assert json.loads(client.get(f"/recipients/{anna.pk}/data.json").content)["recipient"]["name"] == NAMED
    page = client.post(f"/recipients/{anna.pk}/erase", {"typed": NAMED}, follow=True).content.decode()
    assert "Everything was erased" in page
    assert TeamMateFactory.create(owner=owner).owner == owner


def test_the_command_and_the_api_do_the_same(anna: Recipient, owner: User) -> None:
    out = StringIO()
    call_command("person_data", str(anna.pk), stdout=out)
    assert json.loads(out.getvalue())["recipient"]["name"] == NAMED
    with pytest.raises(CommandError, match="--yes"):
        call_command("person_data", str(anna.pk), "--erase")
    program = Program(owner)
    assert program.get(f"/recipients/{anna.pk}/data")["data"]["recipient"]["name"] == NAMED
    program.post(f"/recipients/{anna.pk}/erase", {"confirmed": False}, status=422)
    assert program.post(f"/recipients/{anna.pk}/erase", {"confirmed": True})["id"] == anna.pk
    program.post(f"/recipients/{anna.pk}/erase", {"confirmed": True}, status=409)
