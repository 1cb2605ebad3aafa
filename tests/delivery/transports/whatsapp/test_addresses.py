import pytest

from delivery.transports.whatsapp.addresses import canonical, chat_id, is_chat, number


@pytest.mark.parametrize(
    ("jid", "address"),
    [
        ("4915112345678@c.us", "+4915112345678"),
        ("4915112345678@s.whatsapp.net", "+4915112345678"),
        ("4915112345678:7@s.whatsapp.net", "+4915112345678"),  # one device of several
        ("4915112345678", "+4915112345678"),
        ("+4915112345678", "+4915112345678"),
        ("120363000000000001@g.us", "120363000000000001@g.us"),
        ("77:3@lid", "77@lid"),
        ("", ""),
        ("@c.us", ""),
    ],
)
def test_every_way_to_write_an_address_is_one_in_ours(jid: str, address: str) -> None:
    assert canonical(jid) == address


@pytest.mark.parametrize(
    ("address", "digits", "chat"),
    [
        ("+4915112345678", "4915112345678", "4915112345678@c.us"),
        ("120363@g.us", "120363@g.us", "120363@g.us"),
        ("77@lid", "77@lid", "77@lid"),
    ],
)
def test_an_address_goes_out_as_services_want_it(address: str, digits: str, chat: str) -> None:
    assert number(address) == digits
    assert chat_id(address, person="@c.us") == chat


def test_what_is_shown_to_everybody_is_no_chat() -> None:
    assert not is_chat("status@broadcast")
    assert not is_chat("120363144038483540@newsletter")
    assert not is_chat("")
    assert is_chat("120363@g.us")
