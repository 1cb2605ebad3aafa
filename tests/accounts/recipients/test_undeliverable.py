"""The mark of an address at which nothing arrives: who sets it, who lifts it, and where it shows."""

import pytest
from django.core.exceptions import PermissionDenied
from django.test import Client
from django.urls import reverse

from accounts.imports.report import report_lines
from accounts.models import ConsentChange, Import, Recipient, User
from accounts.recipients import undeliverable
from accounts.recipients.export import export_lines
from accounts.recipients.filters import RecipientFilter
from tests.factories import ImportFactory, ImportRowFactory, RecipientFactory

GONE = "550 5.1.1 No such user"


@pytest.fixture
def recipient(owner: User) -> Recipient:
    found = RecipientFactory.create(owner=owner, name="Anna")
    assert undeliverable.mark(found.pk, reason=GONE, source="report to News, run 3")
    found.refresh_from_db()
    return found


def moves(recipient: Recipient) -> list[str]:
    return list(recipient.consent_changes.order_by("id").values_list("move", flat=True))


def test_the_first_report_counts_and_is_recorded_once(recipient: Recipient) -> None:
    assert not undeliverable.mark(recipient.pk, reason="later", source="another")
    recipient.refresh_from_db()
    assert (recipient.undeliverable_for, recipient.undeliverable_source) == (GONE, "report to News, run 3")
    assert moves(recipient) == ["dead"]
    assert not Recipient.objects.reachable().filter(pk=recipient.pk).exists()


def test_it_is_lifted_with_a_reason_by_those_who_may(recipient: Recipient, reader: User) -> None:
    with pytest.raises(PermissionDenied):
        undeliverable.lift(recipient, how="It works", by=reader)
    with pytest.raises(ValueError, match="needs a reason"):
        undeliverable.lift(recipient, how=" ")
    assert undeliverable.lift(recipient, how="She has a new mailbox", by=recipient.owner)
    assert not undeliverable.lift(recipient, how="again", by=recipient.owner)
    assert moves(recipient) == ["dead", "alive"]
    assert ConsentChange.objects.order_by("-id")[0].by == recipient.owner


def test_a_person_lifts_it_on_the_recipients_page(client: Client, recipient: Recipient) -> None:
    client.force_login(recipient.owner)
    page = client.get(reverse("recipients:recipient", args=[recipient.pk])).content.decode()
    assert GONE in page
    assert "report to News, run 3" in page
    assert "Try this address again" in page
    url = reverse("recipients:consent", args=[recipient.pk, "deliverable"])
    client.post(url, {"how": "New mailbox"})
    recipient.refresh_from_db()
    assert (recipient.undeliverable_at, recipient.undeliverable_for) == (None, "")


def test_a_corrected_address_is_tried(recipient: Recipient) -> None:
    recipient.clean()
    assert recipient.undeliverable_at is not None
    recipient.address = "+60129999999"
    recipient.clean()
    recipient.save()
    recipient.refresh_from_db()
    assert recipient.undeliverable_at is None


def test_it_is_a_filter_and_in_the_export(recipient: Recipient) -> None:
    RecipientFactory.create(owner=recipient.owner, name="Ben")
    rows = RecipientFilter.of({"state": "undeliverable"}).rows(recipient.owner)
    titles, line = export_lines(rows)
    assert dict(zip(titles, line, strict=True))["undeliverable_for"] == GONE
    assert "Ben" in [row.name for row in RecipientFilter.of({"state": "reachable"}).rows(recipient.owner)]


def test_the_report_of_an_import_says_so(recipient: Recipient) -> None:
    job = ImportFactory.create(owner=recipient.owner, channel=recipient.channel, status=Import.Status.CHECKED)
    ImportRowFactory.create(job=job, address=recipient.address, known=True)
    _, line = report_lines(job)
    assert line[-2:] == ("known already", f"Undeliverable: {GONE}. Nothing is sent there.")
