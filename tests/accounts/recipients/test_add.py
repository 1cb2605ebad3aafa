"""A recipient is found and added by its canonical address, whoever writes it and however."""

import pytest
from django.core.exceptions import ValidationError
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from accounts.addresses import BadAddressError
from accounts.models import Recipient, User
from accounts.recipients.add import recipient_at, recipient_for
from tests.factories import RecipientFactory

pytestmark = pytest.mark.django_db


def test_who_opted_out_keeps_their_address() -> None:
    recipient = RecipientFactory.create(address="+60123456789", opted_out=True)
    recipient.address = "+60 12-345 6789"
    recipient.full_clean()
    recipient.address = "+60123456780"
    with pytest.raises(ValidationError, match="opted out at this address"):
        recipient.full_clean()
    Recipient.objects.update(opted_out_at=None)
    recipient.full_clean()


def test_many_ways_to_write_a_number_are_one_recipient(owner: User) -> None:
    first = recipient_for(owner, "whatsapp", "+60 12-345 6789", name="Ann")
    for text in ("60123456789@s.whatsapp.net", "0060123456789", "60123456789@c.us"):
        assert recipient_for(owner, "whatsapp", text, name="Other") == first
        assert recipient_at(owner, "whatsapp", text) == first
    assert (first.name, first.kind, first.address) == ("Ann", "person", "+60123456789")


def test_a_local_number_belongs_to_the_owners_country_and_else_to_the_installations(
    owner: User, settings: Settings
) -> None:
    with pytest.raises(BadAddressError, match="no country is set"):
        recipient_for(owner, "whatsapp", "0151 12345678")
    settings.PHONE_REGION = "DE"
    assert recipient_for(owner, "whatsapp", "0151 12345678").address == "+4915112345678"
    owner.region = "MY"
    assert recipient_for(owner, "whatsapp", "012-345 6789").address == "+60123456789"


def test_one_that_is_not_there_is_not_found(owner: User, stranger: User) -> None:
    recipient_for(stranger, "whatsapp", "+60123456789")
    assert recipient_at(owner, "whatsapp", "+60123456789") is None


def test_a_model_brings_its_address_into_form_and_refuses_a_bad_one(owner: User) -> None:
    recipient = Recipient(owner=owner, channel="email", address="Ann <ANN@Example.com>")
    recipient.full_clean(exclude=["kind"])
    assert (recipient.kind, recipient.address) == ("mailbox", "ann@example.com")
    recipient.address = "ann"
    with pytest.raises(ValidationError, match="has no @"):
        recipient.full_clean()


def test_the_admin_finds_the_double_behind_another_writing(client: Client, owner: User, staff: User) -> None:
    RecipientFactory.create(owner=owner, address="+60123456789")
    client.force_login(staff)
    typed = {"owner": owner.pk, "channel": "whatsapp", "address": "0060 12-345 6789", "fields": "{}"}
    answer = client.post(reverse("admin:accounts_recipient_add"), typed)
    assert "already exists" in answer.content.decode()
    typed["address"] = "120363000000000001"
    assert client.post(reverse("admin:accounts_recipient_add"), typed).status_code == 302
    assert Recipient.objects.get(kind="group").address == "120363000000000001@g.us"


def test_a_country_that_does_not_exist_is_refused(owner: User) -> None:
    owner.region = "XX"
    with pytest.raises(ValidationError, match="is not a country"):
        owner.full_clean()
