"""The check of a sender's domain, against a DNS server of our own."""

from base64 import b64encode
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from accounts.models import Account, SenderDomain, User
from delivery.sender_domain import check as checking
from delivery.sender_domain import lookup
from tests.delivery.sender_domain.dns_server import DnsServer, serving
from tests.factories import AccountFactory, SenderDomainFactory

KEY = b64encode(b"k" * 294).decode()
RECORDS = {
    "school.example": ["unrelated=1", "v=spf1 include:_spf.provider.example ~all"],
    "_spf.provider.example": ["v=spf1 ip4:192.0.2.0/24 -all"],
    "_dmarc.school.example": ["v=DMARC1; p=none"],
    "google._domainkey.school.example": [f"v=DKIM1; k=rsa; p={KEY}"],
    "own._domainkey.school.example": [f"v=DKIM1; k=rsa; p={KEY * 2}"],  # too long for UDP
}


@pytest.fixture
def dns(settings: Settings) -> Iterator[DnsServer]:
    with serving(RECORDS) as server:
        settings.DNS_SERVERS = [f"127.0.0.1:{server.port}"]
        yield server


def mailbox(owner: User, address: str = "news@school.example", **credentials: Any) -> Account:
    given = {"host": "127.0.0.1", "from_address": address, **credentials}
    return AccountFactory.create(owner=owner, by_email=True, transport="email", credentials=given)


def marks(account: Account) -> dict[str, str]:
    row = SenderDomain.objects.get(account=account)
    return {finding["name"]: finding["mark"] for finding in row.findings}


@pytest.mark.django_db
def test_the_records_of_a_domain_are_found(owner: User, dns: DnsServer) -> None:
    account = mailbox(owner)
    row = checking.check(account)
    assert (row.domain, row.trouble) == ("school.example", "")
    assert marks(account) == {"SPF": "good", "DKIM": "good", "DMARC": "warn"}


@pytest.mark.django_db
def test_a_subdomain_takes_the_policy_of_the_domain_above(owner: User, dns: DnsServer) -> None:
    account = mailbox(owner, "a@mail.news.school.example")
    checking.check(account)
    assert marks(account) == {"SPF": "bad", "DKIM": "unknown", "DMARC": "warn"}


@pytest.mark.django_db
def test_a_selector_is_looked_up_alone_and_long_keys_come_over_tcp(owner: User, dns: DnsServer) -> None:
    account = mailbox(owner, dkim_selector="own")
    checking.check(account)
    assert marks(account)["DKIM"] == "good"
    assert [name for name in dns.asked if "_domainkey" in name] == ["own._domainkey.school.example"] * 2


@pytest.mark.django_db
def test_a_guess_that_gets_an_error_spoils_nothing(owner: User, dns: DnsServer) -> None:
    dns.broken.add("k1._domainkey.school.example")
    account = mailbox(owner)
    assert checking.check(account).trouble == ""
    assert marks(account)["DKIM"] == "good"


@pytest.mark.django_db
def test_a_domain_is_asked_for_as_the_dns_writes_it(owner: User, dns: DnsServer) -> None:
    assert checking.check(mailbox(owner, "a@Straße.example")).domain == "xn--strae-oqa.example"


@pytest.mark.django_db
def test_a_domain_that_does_not_exist_has_nothing(owner: User, dns: DnsServer) -> None:
    account = mailbox(owner, "a@nowhere.example")
    checking.check(account)
    assert marks(account) == {"SPF": "bad", "DKIM": "unknown", "DMARC": "bad"}


@pytest.mark.django_db
@pytest.mark.parametrize("how", ["silent", "broken"])
def test_without_an_answer_the_last_findings_stay(
    owner: User, dns: DnsServer, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookup, "SECONDS", 0.3)
    account = mailbox(owner)
    checking.check(account)
    getattr(dns, how).add("_dmarc.school.example")
    row = checking.check(account)
    assert "_dmarc.school.example" in row.trouble
    assert marks(account) == {"SPF": "good", "DKIM": "good", "DMARC": "warn"}


@pytest.mark.django_db
def test_findings_of_another_domain_do_not_stay(
    owner: User, dns: DnsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookup, "SECONDS", 0.3)
    account = mailbox(owner, "a@other.example")
    SenderDomainFactory.create(account=account, findings=[{"name": "SPF", "mark": "good"}])
    dns.broken.add("other.example")
    row = checking.check(account)
    assert (row.domain, row.findings) == ("other.example", [])


@pytest.mark.django_db
def test_each_account_is_checked_once_a_day(owner: User, dns: DnsServer) -> None:
    new, old, fresh = (mailbox(owner) for _ in range(3))
    SenderDomainFactory.create(account=old, checked_at=timezone.now() - timedelta(hours=25))
    SenderDomainFactory.create(account=fresh, checked_at=timezone.now() - timedelta(hours=23))
    AccountFactory.create(owner=owner)  # not by e-mail
    assert checking.check_due() == 2
    assert checking.check_due() == 0
    assert set(marks(new)) == set(marks(old)) == {"SPF", "DKIM", "DMARC"}
    assert marks(fresh) == {}


@pytest.mark.django_db
def test_a_domain_without_an_answer_is_asked_for_again_after_an_hour(owner: User, dns: DnsServer) -> None:
    account = mailbox(owner)
    hour = timezone.now() - timedelta(minutes=61)
    SenderDomainFactory.create(account=account, trouble="The DNS did not answer", checked_at=hour)
    assert checking.check_due() == 1
    assert SenderDomain.objects.get(account=account).trouble == ""


@pytest.mark.django_db
@pytest.mark.parametrize("address", ["", "nobody", "a@" + "x" * 70 + ".example"])
def test_an_address_without_a_usable_domain_breaks_nothing(owner: User, dns: DnsServer, address: str) -> None:
    account = mailbox(owner, address)
    checking.check(account)
    assert not SenderDomain.objects.filter(account=account).exclude(findings=[]).exists()


@pytest.mark.django_db
def test_an_account_without_a_sender_is_not_looked_at_again_all_day(owner: User, dns: DnsServer) -> None:
    mailbox(owner, "")
    assert checking.check_due() == 1
    assert checking.check_due() == 0


@pytest.mark.django_db
def test_the_page_of_the_account_says_what_to_change(owner: User, dns: DnsServer, client: Client) -> None:
    client.force_login(owner)
    account = mailbox(owner, "a@nowhere.example")
    url = reverse("accounts:page", args=[account.pk])
    assert "are looked up within some minutes" in client.get(url).content.decode()
    client.post(reverse("accounts:check_domain", args=[account.pk]))
    page = client.get(url).content.decode()
    assert "No SPF record" in page
    assert "_dmarc.nowhere.example TXT" in page


@pytest.mark.django_db
def test_only_those_who_may_change_an_account_have_its_domain_checked(
    owner: User, reader: User, stranger: User, dns: DnsServer, client: Client
) -> None:
    account = mailbox(owner)
    for person, status in ((reader, 403), (stranger, 404)):
        client.force_login(person)
        assert client.post(reverse("accounts:check_domain", args=[account.pk])).status_code == status
    assert dns.asked == []


@pytest.mark.parametrize(
    ("server", "address", "port"),
    [
        ("1.1.1.1", "1.1.1.1", 53),
        ("127.0.0.1:5353", "127.0.0.1", 5353),
        ("[::1]:54", "::1", 54),
        ("::1", "::1", 53),
    ],
)
def test_a_server_may_be_given_with_its_port(server: str, address: str, port: int) -> None:
    made = lookup._server(server)
    assert (made.address, made.port) == (address, port)
