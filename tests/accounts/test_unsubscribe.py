"""Whoever holds the link may opt out, and nobody else; opening it changes nothing."""

from collections.abc import Callable

import pytest
from django.core import signing
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import ProtectedError
from django.test import Client
from pytest_django import Settings

from accounts.imports.save import save
from accounts.models import ConsentChange, ImportRow, Recipient, User
from accounts.recipients.add import recipient_for
from accounts.unsubscribe import Links, links_from
from tests.factories import AccountFactory, ImportFactory, RecipientFactory, RunTargetFactory

HERE = "https://paceline.example"


@pytest.fixture(autouse=True)
def public_url(settings: Settings) -> None:
    settings.PUBLIC_URL = HERE


@pytest.fixture
def reader_of_mail(owner: User) -> Recipient:
    return RecipientFactory.create(owner=owner, mailbox=True, address="zoë+list@xn--bcher-kva.example")


def path_to(recipient: Recipient) -> str:
    link = Links(owner_id=recipient.owner_id, channel=recipient.channel).to(recipient.address)
    assert link.startswith(f"{HERE}/unsubscribe/")
    return link.removeprefix(HERE)


def is_out(recipient: Recipient) -> bool:
    return Recipient.objects.get(pk=recipient.pk).opted_out_at is not None


def test_a_mail_program_unsubscribes_with_one_post_and_no_cookie(reader_of_mail: Recipient) -> None:
    client = Client(enforce_csrf_checks=True)
    response = client.post(path_to(reader_of_mail), {"List-Unsubscribe": "One-Click"})

    assert response.status_code == 200
    assert "You are unsubscribed" in response.content.decode()
    assert is_out(reader_of_mail)
    assert [change.how for change in reader_of_mail.consent_changes.all()] == [
        "Followed the unsubscribe link."
    ]


def test_opening_the_link_asks_and_changes_nothing(client: Client, reader_of_mail: Recipient) -> None:
    response = client.get(path_to(reader_of_mail))

    page = response.content.decode()
    assert "Unsubscribe?" in page
    assert reader_of_mail.address in page
    assert not is_out(reader_of_mail)
    assert response["X-Robots-Tag"] == "noindex"
    assert "no-store" in response["Cache-Control"]


def test_pressing_twice_is_recorded_once(client: Client, reader_of_mail: Recipient) -> None:
    for _ in range(2):
        assert client.post(path_to(reader_of_mail)).status_code == 200
    assert ConsentChange.objects.count() == 1
    assert "You are unsubscribed" in client.get(path_to(reader_of_mail)).content.decode()


def test_only_the_recipient_of_that_operator_and_channel_is_meant(
    client: Client, reader_of_mail: Recipient
) -> None:
    of_another = RecipientFactory.create(mailbox=True, address=reader_of_mail.address)
    client.post(path_to(reader_of_mail))
    assert not is_out(of_another)


@pytest.mark.django_db
@pytest.mark.parametrize("token", ["x", "eyJ9.abc", "W10.W10", "%00", "a.b.c"])
def test_a_link_that_we_never_made_leads_nowhere(client: Client, token: str) -> None:
    assert client.post(f"/unsubscribe/{token}").status_code == 404


def test_a_link_with_another_address_in_it_leads_nowhere(client: Client, reader_of_mail: Recipient) -> None:
    signature = path_to(reader_of_mail).rpartition(".")[2]
    other = RecipientFactory.create(owner=reader_of_mail.owner, mailbox=True)
    forged = f"{path_to(other).rpartition('.')[0]}.{signature}"
    assert client.post(forged).status_code == 404
    assert not is_out(other)


def old_path_to(recipient: Recipient) -> str:
    """Return a link of an older version: signed with SECRET_KEY, without a target."""
    signer = signing.Signer(salt="accounts.unsubscribe", sep=".")
    return f"/unsubscribe/{signer.sign_object([recipient.owner_id, recipient.channel, recipient.address])}"


def at(recipient: Recipient) -> Recipient:
    """Whoever has the recipient's address now."""
    return Recipient.objects.get(owner=recipient.owner, channel=recipient.channel, address=recipient.address)


@pytest.mark.parametrize("path_of", [path_to, old_path_to])
class TestALinkOfSomebodyWhoWasDeleted:
    def test_asks_and_then_keeps_the_address_out(
        self, client: Client, reader_of_mail: Recipient, path_of: Callable[[Recipient], str]
    ) -> None:
        path = path_of(reader_of_mail)
        Recipient.objects.filter(pk=reader_of_mail.pk).delete()
        assert "Unsubscribe?" in client.get(path).content.decode()
        for _ in range(2):
            assert "You are unsubscribed" in client.post(path).content.decode()
        kept = at(reader_of_mail)
        assert kept.opted_out_at is not None
        assert kept.archived_at is not None
        assert kept.consent_changes.count() == 1
        with pytest.raises(ProtectedError):
            kept.delete()

    def test_whoever_adds_the_address_again_finds_it_opted_out(
        self, client: Client, reader_of_mail: Recipient, path_of: Callable[[Recipient], str]
    ) -> None:
        path = path_of(reader_of_mail)
        Recipient.objects.filter(pk=reader_of_mail.pk).delete()
        client.post(path)
        added = recipient_for(reader_of_mail.owner, "email", reader_of_mail.address.upper())
        assert added.opted_out_at is not None
        assert not Recipient.objects.filter(pk=added.pk).reachable().exists()
        again = Recipient(owner=reader_of_mail.owner, channel="email", address=reader_of_mail.address)
        with pytest.raises(ValidationError, match="already exists"):
            again.full_clean()


def test_an_import_leaves_a_suppressed_address_opted_out(client: Client, reader_of_mail: Recipient) -> None:
    path = path_to(reader_of_mail)
    Recipient.objects.filter(pk=reader_of_mail.pk).delete()
    client.post(path)
    job = ImportFactory.create(owner=reader_of_mail.owner, channel="email", on_existing="update")
    ImportRow.objects.create(job=job, number=1, address=reader_of_mail.address, kind="mailbox", written="x")
    with transaction.atomic():
        save(job)
    assert at(reader_of_mail).archived_at is None
    assert at(reader_of_mail).opted_out_at is not None


class TestALinkOfSomebodyWithANewAddress:
    @pytest.fixture
    def moved(self, reader_of_mail: Recipient) -> tuple[Recipient, str]:
        """A recipient who got a message, and whose address was corrected afterwards."""
        target = RunTargetFactory.create(recipient=reader_of_mail, sent=True)
        links = Links(owner_id=reader_of_mail.owner_id, channel="email")
        path = links.to(reader_of_mail.address, target.pk).removeprefix(HERE)
        Recipient.objects.filter(pk=reader_of_mail.pk).update(address="zoe.new@example.com")
        return reader_of_mail, path

    def test_opts_out_both_and_shows_only_the_old_one(
        self, client: Client, moved: tuple[Recipient, str]
    ) -> None:
        recipient, path = moved
        page = client.get(path).content.decode()
        assert "Unsubscribe?" in page
        assert "zoe.new@example.com" not in page
        assert "You are unsubscribed" in client.post(path).content.decode()
        assert is_out(recipient)
        assert at(recipient).opted_out_at is not None
        assert at(recipient).pk != recipient.pk
        assert "You are unsubscribed" in client.get(path).content.decode()

    def test_leaves_alone_who_got_the_old_address_from_another_operator(
        self, client: Client, moved: tuple[Recipient, str]
    ) -> None:
        recipient, path = moved
        other = RecipientFactory.create(mailbox=True, address=recipient.address)
        client.post(path)
        assert not is_out(other)

    def test_does_not_reach_a_recipient_who_was_given_to_another_operator(
        self, client: Client, moved: tuple[Recipient, str], stranger: User
    ) -> None:
        recipient, path = moved
        Recipient.objects.filter(pk=recipient.pk).update(owner=stranger)
        assert client.post(path).status_code == 200
        assert not is_out(recipient)
        assert at(recipient).opted_out_at is not None


def test_a_target_of_another_operator_in_a_link_is_not_followed(
    client: Client, reader_of_mail: Recipient
) -> None:
    """Only we could make such a link, by mistake: even then it changes nothing."""
    foreign = RunTargetFactory.create(sent=True)
    links = Links(owner_id=reader_of_mail.owner_id, channel="email")
    path = links.to(reader_of_mail.address, foreign.pk).removeprefix(HERE)
    assert client.post(path).status_code == 200
    assert is_out(reader_of_mail)
    assert not is_out(foreign.recipient)


class TestKeys:
    """Links outlive the keys that signed them, as long as these are kept as fallbacks."""

    NEW, NEWER = "a-new-key-" * 5, "a-newer-key-" * 5

    def test_a_key_of_their_own_knows_the_links_of_before(
        self, client: Client, reader_of_mail: Recipient, settings: Settings
    ) -> None:
        path = path_to(reader_of_mail)
        settings.UNSUBSCRIBE_KEYS = [self.NEW]
        assert client.post(path).status_code == 200
        assert is_out(reader_of_mail)

    def test_another_secret_key_changes_nothing_for_links_with_their_own(
        self, client: Client, reader_of_mail: Recipient, settings: Settings
    ) -> None:
        settings.UNSUBSCRIBE_KEYS = [self.NEW]
        path = path_to(reader_of_mail)
        settings.SECRET_KEY = "quite-another-key-" * 5
        settings.UNSUBSCRIBE_KEYS = [self.NEWER, self.NEW]
        assert client.post(path).status_code == 200

    @pytest.mark.parametrize("path_of", [path_to, old_path_to])
    def test_a_secret_key_that_is_kept_as_a_fallback_is_honoured(
        self,
        client: Client,
        reader_of_mail: Recipient,
        settings: Settings,
        path_of: Callable[[Recipient], str],
    ) -> None:
        path = path_of(reader_of_mail)
        before, settings.SECRET_KEY = settings.SECRET_KEY, "quite-another-key-" * 5
        assert client.post(path).status_code == 404
        settings.SECRET_KEY_FALLBACKS = [before]
        assert client.post(path).status_code == 200

    def test_new_links_are_signed_with_the_first_key_alone(
        self, client: Client, reader_of_mail: Recipient, settings: Settings
    ) -> None:
        settings.UNSUBSCRIBE_KEYS = [self.NEWER, self.NEW]
        path = path_to(reader_of_mail)
        settings.UNSUBSCRIBE_KEYS = [self.NEW]
        assert client.post(path).status_code == 404
        assert not is_out(reader_of_mail)


@pytest.mark.parametrize("said", [[], [1], [1, "email"], {"a": 1}, "abc", 7, None])
def test_what_we_signed_for_something_else_leads_nowhere(
    client: Client, reader_of_mail: Recipient, said: object
) -> None:
    token = signing.Signer(salt="accounts.unsubscribe", sep=".").sign_object(said)
    assert client.post(f"/unsubscribe/{token}").status_code == 404
    other = signing.Signer(salt="another", sep=".").sign_object(
        [reader_of_mail.owner_id, "email", "a@b.example"]
    )
    assert client.post(f"/unsubscribe/{other}").status_code == 404
    assert not is_out(reader_of_mail)
    assert Recipient.objects.count() == 1


def test_the_link_of_an_operator_who_is_gone_says_that_nothing_comes(
    client: Client, reader_of_mail: Recipient
) -> None:
    path = Links(owner_id=10**9, channel="email").to("a@b.example").removeprefix(HERE)
    assert "You are unsubscribed" in client.get(path).content.decode()
    assert client.post(path).status_code == 200
    assert Recipient.objects.count() == 1


def test_only_e_mail_has_links(owner: User, reader_of_mail: Recipient) -> None:
    links = links_from(AccountFactory.create(owner=owner, by_email=True))
    assert links is not None
    assert links(reader_of_mail.address, None) == HERE + path_to(reader_of_mail)
    assert links_from(AccountFactory.create(owner=owner)) is None


def test_without_a_public_address_there_is_no_link(reader_of_mail: Recipient, settings: Settings) -> None:
    settings.PUBLIC_URL = ""
    assert Links(owner_id=1, channel="email").to(reader_of_mail.address) == ""
