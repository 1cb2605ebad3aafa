"""Addresses of other servers are read in one way, or not at all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from delivery.transports.base import CredentialsError
from delivery.transports.email.send import EmailTransport
from delivery.transports.http.exchange import gateway_url
from delivery.transports.networks.addresses import BadWebAddressError, host_name, web_address


@pytest.mark.parametrize(
    ("text", "rebuilt"),
    [
        ("https://gateway.example", "https://gateway.example"),
        ("HTTPS://Gateway.Example:443/v1/", "https://gateway.example/v1/"),
        ("http://evolution_api:8080", "http://evolution_api:8080"),
        ("http://127.0.0.1:3000/a?b=c", "http://127.0.0.1:3000/a?b=c"),
        ("http://[::1]:3000", "http://[::1]:3000"),
        ("http://[0:0::1]/x", "http://[::1]/x"),
        ("https://gateway.example./a", "https://gateway.example/a"),
        ("https://b\u00fccher.example/", "https://xn--bcher-kva.example/"),
        (
            "https://fcm.googleapis.com/fcm/send/a:b_c-d%2B=",
            "https://fcm.googleapis.com/fcm/send/a:b_c-d%2B=",
        ),
    ],
)
def test_an_address_is_rebuilt_from_its_parts(text: str, rebuilt: str) -> None:
    assert str(web_address(text)) == rebuilt
    assert str(web_address(rebuilt)) == rebuilt


@pytest.mark.parametrize(
    "text",
    [
        "",
        "gateway.example",
        "//gateway.example/",
        "https:///x",
        "https://",
        "ftp://gateway.example/",
        "javascript:alert(1)",
        "https://127.0.0.1\\@allowed.example/",
        "https://127.0.0.1\\.allowed.example/",
        "https://allowed.example\\@127.0.0.1/",
        "https://user@allowed.example/",
        "https://user:word@allowed.example/",
        "https://allowed.example@127.0.0.1/",
        "https://allowed.example%40127.0.0.1/",
        "https://allowed.example%2f@127.0.0.1/",
        "https://127.0.0.1#@allowed.example/",
        "https://allowed.example/#part",
        "https://127.0.0.1;allowed.example/",
        "https://allowed.example,127.0.0.1/",
        "https://allowed.example /",
        "https://allowed.example/a b",
        "https://allowed.example/a\\b",
        "https://allowed.example/\t",
        "https://allowed.example\r\nHost: other/",
        "https://allowed.example\x00.other/",
        " https://allowed.example/",
        "https://allowed.example\n",
        "https://[::1]allowed.example/",
        "https://[::1%25eth0]/",
        "https://[allowed.example]/",
        "https://::1/",
        "https://[::1/",
        "https://allowed.example:0/",
        "https://allowed.example:65536/",
        "https://allowed.example:99999999999/",
        "https://allowed.example:-1/",
        "https://allowed.example:+443/",
        "https://allowed.example:\u0664\u0664\u0663/",
        "https://allowed.example:443:80/",
        "https://2130706433/",
        "https://0x7f000001/",
        "https://0x7f.1/",
        "https://127.1/",
        "https://0177.0.0.1/",
        "https://127.0.0.01/",
        "https://1.2.3.4.5/",
        "https://999.1.1.1/",
        "https://\uff11\uff12\uff17.1/",
        "https://-allowed.example/",
        "https://allowed..example/",
        "https://.example/",
        "https://allowed.example../",
        "https://a" + "a" * 63 + ".example/",
        "https://" + "a." * 130 + "example/",
        "https://allowed.example/" + "a" * 3000,
    ],
)
def test_what_two_programs_could_read_differently_is_refused(text: str) -> None:
    with pytest.raises(BadWebAddressError):
        web_address(text)
    with pytest.raises(CredentialsError):
        gateway_url(text, label="Address")


def test_letters_that_browsers_read_as_others_are_read_so_too() -> None:
    assert web_address("https://\uff11\uff12\uff17\u30020\u30020\u30021/").host == "127.0.0.1"
    assert web_address("https://\u24d1\u24d8g.example/").host == "big.example"


@given(st.text(max_size=60), st.text("\\@:/#?[]%. 0x1a", max_size=12))
def test_whatever_is_let_through_is_read_the_same_by_the_http_client(one: str, two: str) -> None:
    text = f"https://{one}{two}"
    try:
        found = web_address(text)
    except BadWebAddressError:
        return
    url = URL(str(found))
    assert (url.scheme, url.raw_host, url.port) == (found.scheme, found.host, found.port)
    assert url.raw_user is None


@pytest.mark.parametrize(
    "host", ["a b", "mail.example/x", "user@mail.example", "mail\\x", "127.1", "", "a\x00b"]
)
def test_mail_servers_are_held_to_the_same_rule(host: str) -> None:
    with pytest.raises(BadWebAddressError):
        host_name(host)
    told = {"host": "smtp.school.example", "from_address": "a@school.example"}
    for name in ("host", "imap_host") if host else ():
        with pytest.raises(CredentialsError):
            EmailTransport(told | {name: host}, None)
