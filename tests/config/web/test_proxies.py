"""The sender of a request: only a trusted proxy is believed."""

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest, HttpResponse
from pytest_django import Settings

from config.web.proxies import ForwardedAddress, client_address, network_of, networks_of

OURS = networks_of(["10.0.0.0/8", "::1"])


@pytest.mark.parametrize(
    ("peer", "forwarded", "sender"),
    [
        ("203.0.113.9", "", "203.0.113.9"),
        ("203.0.113.9", "198.51.100.1", "203.0.113.9"),  # a stranger's claim
        ("10.0.0.1", "198.51.100.1", "198.51.100.1"),
        ("10.0.0.1", "", "10.0.0.1"),
        ("10.0.0.1", "1.1.1.1, 198.51.100.1", "198.51.100.1"),  # the left one came from the client
        ("10.0.0.1", "1.1.1.1, 198.51.100.1, 10.0.0.2", "198.51.100.1"),  # two proxies of ours
        ("10.0.0.1", "10.9.9.9, 10.0.0.2", "10.9.9.9"),  # somebody inside
        ("10.0.0.1", "198.51.100.1:4711", "198.51.100.1"),
        ("10.0.0.1", "[2001:db8::7]:4711", "2001:db8::7"),
        ("10.0.0.1", "2001:db8::7", "2001:db8::7"),
        ("::1", "198.51.100.1", "198.51.100.1"),
        ("::ffff:10.0.0.1", "198.51.100.1", "198.51.100.1"),
        ("10.0.0.1", "198.51.100.1, unknown", "10.0.0.1"),
        ("10.0.0.1", "198.51.100.1, \x00", "10.0.0.1"),
        ("10.0.0.1", "," * 1000, "10.0.0.1"),
        ("testclient", "198.51.100.1", "testclient"),
    ],
)
def test_the_sender(peer: str, forwarded: str, sender: str) -> None:
    assert client_address(peer, forwarded, OURS) == sender


@pytest.mark.parametrize(
    ("address", "counted_as"),
    [
        ("198.51.100.1", "198.51.100.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("::ffff:198.51.100.1", "198.51.100.1"),
        ("", "0.0.0.0"),
    ],
)
def test_what_counts_as_one_sender(address: str, counted_as: str) -> None:
    assert network_of(address) == counted_as


def test_nobody_is_trusted_where_the_setting_says_so() -> None:
    assert networks_of(["none"]) == ()


@pytest.mark.parametrize("word", ["proxy.example", "10.0.0.1/8", "2"])
def test_what_is_no_network_is_refused_with_a_sentence(word: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=r"^TRUSTED_PROXIES: .*10\.1\.2\.0/24"):
        networks_of([word])


@pytest.mark.parametrize(("peer", "seen"), [("10.0.0.1", "198.51.100.1"), ("203.0.113.9", "203.0.113.9")])
def test_claims_reach_no_view(peer: str, seen: str, settings: Settings) -> None:
    settings.TRUSTED_PROXIES = ["10.0.0.1"]
    request = HttpRequest()
    request.META |= {"REMOTE_ADDR": peer, "HTTP_X_FORWARDED_FOR": "198.51.100.1", "HTTP_X_REAL_IP": "1.1.1.1"}
    ForwardedAddress(lambda _: HttpResponse())(request)
    assert {"REMOTE_ADDR": seen} == request.META
